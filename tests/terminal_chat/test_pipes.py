"""One answer is printed, by an engine that repeats the user's text or obeys a grammar."""

import io
import json
import signal
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ouzel.cli.app import main
from ouzel.config import ServerConfig
from ouzel.terminal_chat.loop_thread import LoopThread
from tests.api.seeing import encode_base64, last_prompt, seeing_server
from tests.api.serving import RunningServer, running_server
from tests.client.canned_server import canned_server, json_answer
from tests.terminal_chat.running import Ended, piped

RunHere = Callable[..., Ended]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def parrot() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def guided() -> Iterator[RunningServer]:
    with running_server(engine_factory="create_grammar_parrot") as server:
        yield server


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunHere:
    """Runs `ouzel chat` in this process, with an empty standard input.

    A process of its own would take 0.4 s to start.
    """

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        capsys.readouterr()
        try:
            status = main(["chat", *arguments])
        except SystemExit as ending:
            assert isinstance(ending.code, int)
            status = ending.code
        return Ended(status, *capsys.readouterr())

    return run


def test_a_process_ends_with_the_status_and_the_complaint(parrot: RunningServer) -> None:
    ended = piped("--url", parrot.url, "-p", "x", "--set", "n=2")
    assert (ended.status, ended.output) == (2, "")
    assert ended.errors.startswith("ouzel: ")
    assert "n: must be 1" in ended.errors
    assert ended.errors.count("\n") == 1


def test_the_answer_to_p_is_printed_as_it_is(parrot: RunningServer) -> None:
    ended = piped("--url", parrot.url, "-p", "**Hello**\n\n- you")
    assert (ended.status, ended.output, ended.errors) == (0, "**Hello**\n\n- you\n", "")


def test_standard_input_is_the_prompt(parrot: RunningServer) -> None:
    assert piped("--url", parrot.url, text="Grüße\n").output == "Grüße\n"


def test_p_and_standard_input_are_joined(parrot: RunningServer) -> None:
    assert (
        piped("--url", f"{parrot.url}/v1", "-p", "Say:", text="Hello!\n").output
        == "Say:\n\nHello!\n"
    )


def test_json_is_one_object_with_the_usage(parrot: RunningServer) -> None:
    ended = piped("--url", parrot.url, "-p", "Hi \x1b[31m\u009b", "--json")

    answer = json.loads(ended.output)
    assert (answer["content"], answer["finish_reason"]) == ("Hi \x1b[31m\x9b", "stop")
    assert (answer["reasoning"], answer["tool_calls"]) == (None, [])
    assert answer["usage"]["completion_tokens"] == 11
    assert "\x9b" not in ended.output


def test_control_sequences_are_harmless_in_a_pipe_too(parrot: RunningServer) -> None:
    ended = piped("--url", parrot.url, "-p", "a\x1b]0;b\u009bc")
    assert ended.output == "a␛]0;b\\x9bc\n"


def test_a_schema_holds_the_answer(guided: RunningServer, schema: str) -> None:
    ended = piped("--url", guided.url, "-p", '{"a": 12} and more', "--schema", schema)
    assert (ended.status, json.loads(ended.output)) == (0, {"a": 12})


def test_an_answer_that_ends_before_its_json_is_refused(guided: RunningServer, schema: str) -> None:
    ended = piped(
        "--url", guided.url, "-p", '{"a": 12}', "--schema", schema, "--set", "max_tokens=3"
    )
    assert (ended.status, ended.output) == (1, "")
    assert "ended early (length)" in ended.errors


def test_a_cut_answer_is_told_of_beside_the_output(parrot: RunningServer) -> None:
    ended = piped("--url", parrot.url, "-p", "Hello!", "--set", "max_tokens=4")
    assert (ended.status, ended.output) == (0, "Hell\n")
    assert "ends early" in ended.errors


def test_system_text_and_pictures_reach_the_model(tmp_path: Path) -> None:
    picture = tmp_path / "a picture.png"
    picture.write_bytes(b64decode(encode_base64(56, 56)))
    (tmp_path / "model").mkdir()
    with seeing_server(tmp_path / "model") as server:
        ended = piped(
            "--url", server.url, "-p", "What?", "--image", str(picture), "--system", "Be brief."
        )

    assert ended.status == 0
    assert "Be brief." in last_prompt()
    assert "<picture of 4>" in last_prompt()


def test_the_key_comes_from_the_flag_or_the_environment() -> None:
    with running_server(config=ServerConfig(api_key=("secret",))) as server:
        by_flag = piped("--url", server.url, "-p", "Hi", "--api-key", "secret")
        by_variable = piped(
            "--url", server.url, "-p", "Hi", environment={"OPENAI_API_KEY": "secret"}
        )
        without = piped("--url", server.url, "-p", "Hi")

    assert (by_flag.output, by_variable.output) == ("Hi\n", "Hi\n")
    assert without.status == 1
    assert (
        without.errors
        == "ouzel: 401: an API key is needed: send it as 'Authorization: Bearer KEY'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["-p", "x", "--set", "temperature=9"], 1, "400: temperature must be <= 2.0, given 9"),
        (
            ["-p", "x", "--model", "owl"],
            2,
            "the model must be one of org/parrot, parrot, given 'owl'",
        ),
        (["-p", "x|fail|"], 1, "scripted failure"),
        (
            ["-p", "x", "--set", "temprature=1"],
            2,
            "temprature: the server has no such field; did you mean temperature",
        ),
        (
            ["-p", "x", "--set", "temperature"],
            2,
            "must be followed by a name and a value, given 'temperature'",
        ),
        (["-p", "x", "--set", "n=2"], 2, "n: must be 1"),
        (
            ["-p", "x", "--image", "absent.png"],
            2,
            "absent.png: cannot be read: No such file or directory",
        ),
        (["-p", "x", "--image", __file__], 2, "must be a picture"),
        (["-p", "x", "--schema", __file__], 2, "must be JSON"),
        (["-p", "x", "--tools", __file__], 2, "--tools: needs a conversation"),
        (["-p", " "], 2, "-p: must have a text"),
        ([], 2, "-p: must have a text"),
        (["-p"], 2, "-p/--prompt: expected one argument"),
        (["-p", "x", "--port", "1"], 2, "--port: cannot be used with --url"),
        (["-p", "x", "model"], 2, "model: cannot be used with --url"),
        (["-p", "x\udcff"], 2, "the arguments must be UTF-8"),
    ],
)  # fmt: skip
def test_an_error_is_reported_in_one_line(
    parrot: RunningServer, run_here: RunHere, arguments: list[str], status: int, complaint: str
) -> None:
    ended = run_here("--url", parrot.url, *arguments)

    assert (ended.status, ended.output.strip("x\n")) == (status, "")
    assert ended.errors.startswith("ouzel: ")
    assert complaint in ended.errors
    assert ended.errors.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["--model", "x", "-p", "x"], 2, "--model: needs --url, given 'x'"),
        (["--api-key", "x", "-p", "x"], 2, "--api-key: needs --url"),
        (["--port", "1", "-p", "x"], 2, "--port: is an option of ouzel serve"),
        (["--prot", "1", "-p", "x"], 2, "unknown option --prot; did you mean"),
        (["--max-num-seqs", "many", "-p", "x"], 2, "--max-num-seqs"),
        (["/nowhere", "-p", "x"], 1, "there is no directory or GGUF file /nowhere"),
        (["--url", "http://127.0.0.1:1", "-p", "x"], 1, "the server cannot be reached"),
        (["--url", "ftp://x", "-p", "x"], 1, "the URL of a server must be like"),
    ],
)
def test_command_lines_without_a_server_are_judged(
    run_here: RunHere, arguments: list[str], status: int, complaint: str
) -> None:
    ended = run_here(*arguments)

    assert (ended.status, ended.output) == (status, "")
    assert complaint in ended.errors
    assert ended.errors.count("\n") == 1


def test_standard_input_must_be_text(parrot: RunningServer) -> None:
    ended = piped("--url", parrot.url, text=b"\xff\xfe")
    assert (ended.status, ended.errors) == (
        2,
        "ouzel: standard input: must be UTF-8: invalid start byte at byte 0\n",
    )


def test_help_tells_of_the_flags_and_of_serve() -> None:
    ended = piped("--help")
    assert ended.status == 0
    assert "--schema FILE" in ended.output
    assert "ouzel serve --help" in ended.output


def test_ctrl_c_ends_with_130(parrot: RunningServer) -> None:
    command = [
        sys.executable,
        "-m",
        "ouzel",
        "chat",
        "--url",
        parrot.url,
        "-p",
        "Hello\n",
        "--set",
        "ignore_eos=true",
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"Hello\n"

    process.send_signal(signal.SIGINT)

    _, errors = process.communicate()
    assert (process.returncode, errors) == (130, b"")


def test_an_error_of_a_server_is_harmless_too() -> None:
    refusal = json_answer("500 Oops", '{"error": {"message": "a\\u001b]0;owned\\u0007\\nb"}}')
    with LoopThread() as loop, loop.entered(canned_server(refusal)) as server:
        ended = piped("--url", server.url, "-p", "x")
    assert (ended.status, ended.errors) == (1, "ouzel: 500: a␛]0;owned␇␊b\n")


def test_a_reader_that_leaves_is_no_error(parrot: RunningServer) -> None:
    command = [sys.executable, "-m", "ouzel", "chat", "--url", parrot.url, "-p", "Hello\n" * 200]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()

    with process:
        assert process.stderr is not None
        errors = process.stderr.read()
    assert (process.returncode, errors) == (1, b"")
