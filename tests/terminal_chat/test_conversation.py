"""The real program holds a conversation in a terminal, with keys pressed and a screen read."""

import json
import shutil
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from tests.api.seeing import encode_base64, last_prompt, seeing_server
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN
from tests.terminal_chat.terminal_program import (
    ALT_ENTER,
    CTRL_C,
    CTRL_D,
    ENTER,
    TAB,
    UP,
    TerminalProgram,
    chatting,
)

Chatting = Callable[..., AbstractContextManager[TerminalProgram]]
CALL = '<tool_call>{"name": "add", "arguments": {"first": 2, "second": 3}}</tool_call>'
TOOLS = '''
def add(first: int, second: int) -> int:
    """Adds two numbers."""
    return first + second
'''


@pytest.fixture(scope="module")
def parrot() -> Iterator[RunningServer]:
    with running_server(chat_template=QWEN, output_format=OutputFormat(calls=HERMES)) as server:
        yield server


@pytest.fixture(scope="module")
def slow() -> Iterator[RunningServer]:
    with running_server({"step_s": 0.02}, output_format=OutputFormat()) as server:
        yield server


@pytest.fixture
def chat(parrot: RunningServer, tmp_path: Path) -> Chatting:
    return partial(chatting, "--url", parrot.url, state=tmp_path)


def say(program: TerminalProgram, line: str, awaited: str) -> str:
    """Types a line, and waits for the awaited text and the next prompt."""
    program.enter(line)
    program.wait_for(awaited)
    return program.wait_for_prompt()


def wait_for_times(program: TerminalProgram, text: str, times: int) -> None:
    while program.seen().count(text) < times:
        assert program.process.poll() is None, program.seen()
        time.sleep(0.02)


def test_an_answer_streams_and_is_drawn(slow: RunningServer, tmp_path: Path) -> None:
    with chatting("--url", slow.url, state=tmp_path, columns=400) as program:
        program.enter("begin " + "word " * 25 + "**end**")
        program.wait_for("\nbegin word")
        assert slow.engine.num_unfinished == 1
        seen = program.wait_for_prompt()
    assert "**end**" in seen.split("\nbegin")[0]
    assert "**" not in seen.split("\nbegin")[1]


def test_ctrl_c_stops_an_answer_and_not_the_program(slow: RunningServer, tmp_path: Path) -> None:
    with chatting("--url", slow.url, state=tmp_path) as program:
        program.enter("begin " + "word " * 300)
        program.wait_for("\nbegin word")
        program.press(CTRL_C)
        program.wait_for_prompt()
        seen = say(program, "hello you", "\nhello you")
        assert seen.count("word") < 600
        program.press(CTRL_D)
        assert program.wait_for_end() == 0
    assert slow.engine.num_unfinished == 0


def test_functions_are_tools_after_a_question(chat: Chatting, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    with chat(columns=300) as program:
        say(program, f"/tools {tmp_path / 'tools.py'}", "add")
        program.enter(CALL)
        program.wait_for("Run it?")
        program.press("y\r")
        program.wait_for("5")
        program.wait_for_prompt()
        program.enter(CALL)
        wait_for_times(program, "Run it?", 2)
        program.press("n\r")
        seen = program.wait_for("the user did not allow this call")
    assert "add" in seen


def test_sigterm_ends_the_program_while_a_tool_runs(chat: Chatting, tmp_path: Path) -> None:
    source = (
        "import time\n"
        "def add(first: int, second: int) -> None:\n"
        "  print('it runs', flush=True)\n"
        "  time.sleep(3600)\n"
    )
    (tmp_path / "tools.py").write_text(source)
    with chat("--tools", str(tmp_path / "tools.py")) as program:
        program.enter(CALL)
        program.wait_for("Run it?")
        program.press("y" + ENTER)
        program.wait_for("it runs")
        program.process.terminate()
        assert program.wait_for_end() == 143


def test_a_line_that_cannot_be_remembered_is_sent_all_the_same(
    chat: Chatting, tmp_path: Path
) -> None:
    with chat() as program:
        program.wait_for_prompt()
        shutil.rmtree(tmp_path / "ouzel")
        say(program, "not remembered", "\nnot remembered")


def test_a_picture_goes_with_the_next_message_and_is_taken_off_where_it_is_refused(
    chat: Chatting, tmp_path: Path
) -> None:
    picture = tmp_path / "a picture.png"
    picture.write_bytes(b64decode(encode_base64(56, 56)))
    (tmp_path / "model").mkdir()
    with (
        seeing_server(tmp_path / "model") as server,
        chatting("--url", server.url, state=tmp_path) as program,
    ):
        program.enter(f"/image {picture}")
        say(program, "what is it?", "\nwhat is it?")
        assert "<picture of 4>" in last_prompt()
    with chat(columns=300) as program:
        program.enter(f"/image {picture}")
        program.enter("what is it?")
        program.wait_for("reads text only")
        say(program, "and now?", "\nand now?")


def test_resizing_in_the_middle_of_an_answer_loses_nothing(
    slow: RunningServer, tmp_path: Path
) -> None:
    words = [f"w{number}" for number in range(70)]
    with chatting("--url", slow.url, state=tmp_path, columns=80, lines=12) as program:
        program.enter(" ".join(words))
        program.wait_for("\nw0 w1")
        for number, columns in ((15, 40), (30, 100), (45, 60)):
            program.wait_for(f"w{number}")
            program.resize(columns, 12)
        program.wait_for_prompt()
        say(program, "/stats", "tokens")


def test_lines_are_edited_completed_and_remembered(chat: Chatting) -> None:
    with chat() as program:
        program.wait_for_prompt()
        program.press("one" + ALT_ENTER + "two\r")
        program.wait_for("\none\ntwo")
        program.wait_for_prompt()
        program.press("/sta" + TAB)
        program.wait_for("> /stats")
        program.press("\r")
        program.wait_for("prompt tokens")
    with chat() as program:
        program.wait_for_prompt()
        program.press(UP + UP + "\r")
        program.wait_for("\none\ntwo")


def test_a_line_that_is_typed_before_the_first_prompt_is_sent(chat: Chatting) -> None:
    """The terminal takes the keys before the program starts, and turns Enter into a line feed."""
    with chat() as program:
        program.press(f"first line{ENTER}second")
        wait_for_times(program, "first line", 2)

        program.wait_for("> second")
        program.press(f" line{ENTER}")
        wait_for_times(program, "second line", 2)


def test_a_line_that_is_typed_while_the_model_loads_is_sent(tmp_path: Path) -> None:
    with chatting(state=tmp_path) as program:
        program.wait_for("loading")
        program.press(f"What is 17 plus 25?{ENTER}")
        program.wait_for("42")
        program.wait_for_prompt()


def test_a_conversation_is_saved_and_loaded(chat: Chatting, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    with chat(columns=300) as program:
        say(program, "/system Be brief.", "Be brief.")
        say(program, "/set temperature 0.5", "temperature 0.5")
        say(program, "remember this", "\nremember this")
        say(program, f"/save {path}", str(path))
    saved = json.loads(path.read_text())
    assert "remember this" in json.dumps(saved) and "Be brief." in json.dumps(saved)
    with chat(columns=300) as program:
        say(program, f"/load {path}", "2 messages of a chat with")
        say(program, "/set", "temperature 0.5")


BAD_INPUT = [
    ("/nonsense", "there is no command /nonsense"),
    ("/set temperature 9", "temperature must be <= 2.0, given 9"),
    ("/set temprature 1", "the server has no such field; did you mean temperature"),
    ("/set temperature", "/set: must be followed by a name and a value, given 'temperature'"),
    ("/unset nothing", "given 'nothing'"),
    ("/model owl", "given 'owl'"),
    ("/image absent.png", "cannot be read"),
    ("/tools absent.py", "there is no such file"),
    ("/schema absent.json", "absent.json: cannot be read"),
    ("/load absent.json", "absent.json: cannot be read"),
    ("/save /", "given the directory /"),
    ("/save /dev/null", "given the device /dev/null"),
    ("/save ~nobodys/x", "~nobodys/x: cannot be written: No such file or directory"),
    ("/image /dev/zero", "/dev/zero: must be a picture"),
    ("/undo", "/undo: there is no message yet"),
    ("/retry", "/retry: there is no message yet"),
    ("/edit", "/edit: there is no message yet"),
]


def test_bad_input_is_one_line_and_the_chat_goes_on(chat: Chatting) -> None:
    with chat(columns=200, lines=50) as program:
        for line, complaint in BAD_INPUT:
            times = program.seen().count(complaint)
            program.enter(line)
            wait_for_times(program, complaint, times + 1)
        say(program, "still here", "\nstill here")


def test_control_sequences_of_an_answer_do_nothing(chat: Chatting) -> None:
    with chat() as program:
        program.wait_for_prompt()
        hostile = "a\\u001b]0;owned\\u0007b \\u001b[2Jc"
        call = json.dumps({"name": "x", "arguments": {}})
        say(program, f"/system {hostile}", "owned")
        say(program, f"before {call}", "before")
    assert b"\x1b]0;owned" not in program.raw and b"\x1b[2J" not in program.raw.replace(
        b"\x1b[2J\x1b[H", b""
    )


def test_without_a_url_it_loads_the_model_itself(tmp_path: Path) -> None:
    with chatting(
        "--cache-dir", str(tmp_path), "--kv-cache-gib", "0.05", state=tmp_path
    ) as program:
        say(program, "What is 17 plus 25?", "17 + 25 = 42")
        program.press(CTRL_D)
        assert program.wait_for_end() == 0
