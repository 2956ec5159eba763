"""`ouzel chat --mcp`: the server calls tools of real MCP servers on loopback ports."""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.options.invalid_option import InvalidOption
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp_kind import McpKind
from ouzel.terminal_chat.mcp_servers import read_mcp_servers
from ouzel.terminal_chat.response_body import make_response_body
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.mcp_server import SECRET, KeyCheck, make_server, running
from tests.terminal_chat.running import piped
from tests.terminal_chat.terminal_program import CTRL_C, TerminalProgram, chatting

Chatting = Callable[..., AbstractContextManager[TerminalProgram]]
ADD = write_call("add", {"a": 2, "b": 3}).replace("\n", " ")
PROGRAM = "tests.hosted_tools.mcp_server"
QUESTION = "Run it? [y]es, [n]o, [a]lways:"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(make_server().streamable_http_app()) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    """Yields the URL of a server that wants a secret."""
    with running(KeyCheck(make_server().streamable_http_app(), SECRET)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def gone() -> Iterator[str]:
    """Yields the URL of a port at which nobody listens, and which nobody else can take."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"


@pytest.fixture(scope="module")
def server(
    url: str, locked: str, gone: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    hosts = tuple(each.split("/")[2] for each in (url, locked, gone))
    allowed = read_media_hosts(hosts, "allowed_mcp_hosts")
    kind = McpKind({}, allowed, timeout_s=60.0, max_answer_bytes=10**6)
    path = tmp_path_factory.mktemp("store") / "responses.sqlite3"
    hosted = HostedKinds((kind,))
    with thinking_server(f"sqlite:///{path}", max_model_len=16384, hosted=hosted) as server:
        yield server


@pytest.fixture
def chat(server: RunningServer, url: str, tmp_path: Path) -> Chatting:
    return partial(
        chatting, "--url", server.url, "--mcp", f"sums={url}", state=tmp_path, columns=160
    )


def test_a_call_runs_after_the_user_has_allowed_it(chat: Chatting) -> None:
    with chat() as program:
        assert "MCP servers: sums" in program.wait_for_prompt()
        program.enter(ADD)
        seen = program.wait_for(QUESTION)
        assert "tools: add, fail, hang, flood" in seen
        assert '⚙ sums.add({"a": 2, "b": 3})' in seen
        assert "the sum is 5" not in seen
        program.press("y\r")
        program.wait_for("the sum is 5")
        seen = program.wait_for_prompt()
    assert seen.count("⚙ sums.add") == 1  # the run of an approved call is not shown again
    assert seen.count("tools: add") == 1


def test_a_refused_call_does_not_run(chat: Chatting) -> None:
    with chat() as program:
        program.enter(ADD)
        program.wait_for(QUESTION)
        program.press("n\r")
        program.wait_for("The user did not allow this call.")
        assert "the sum is 5" not in program.wait_for_prompt()


def test_a_tool_that_is_always_allowed_runs_without_a_question(chat: Chatting) -> None:
    with chat() as program:
        program.enter(ADD)
        program.wait_for(QUESTION)
        program.press("a\r")
        program.wait_for("the sum is 5")
        program.enter(write_call("add", {"a": 20, "b": 3}).replace("\n", " "))
        program.wait_for("the sum is 23")
        seen = program.wait_for_prompt()
    assert seen.count(QUESTION) == 1


def test_a_call_that_the_user_stops_does_not_run_again(chat: Chatting) -> None:
    with chat("--mcp-approval", "never") as program:
        program.enter(write_call("hang", {}).replace("\n", " "))
        program.wait_for("⚙ sums.hang({})")
        program.press(CTRL_C)
        program.wait_for("(stopped)")
        program.enter("Hello again")
        program.wait_for_prompt()
        seen = program.wait_for("Hello again\n")
    assert seen.count("⚙ sums.hang") == 1


def test_a_chat_is_saved_and_loaded_with_its_calls(chat: Chatting, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    with chat("--mcp-approval", "never") as program:
        program.enter(ADD)
        program.wait_for("the sum is 5")
        program.enter(f"/save {path}")
        program.wait_for("saved 2 messages")
        program.enter(f"/load {path}")
        program.wait_for("2 messages of a chat")
        program.enter("Bye")
        program.wait_for_prompt()
    messages = json.loads(path.read_text())["messages"]
    assert [item["type"] for item in messages[1]["items"]] == [
        "mcp_list_tools",
        "mcp_call",
        "message",
    ]


def test_one_answer_is_printed_without_questions(server: RunningServer, url: str) -> None:
    arguments = ("--url", server.url, "--mcp", url, "--mcp-approval", "never")
    ended = piped(*arguments, "--json", "-p", ADD)
    assert ended.status == 0, ended.errors
    answer = json.loads(ended.output)
    assert "the sum is 5" in answer["content"]
    assert answer["items"][1]["output"] == "the sum is 5"
    assert answer["finish_reason"] == "stop"
    assert answer["usage"]["output_tokens"] > 0


def test_a_model_of_this_process_may_call_the_named_host(url: str) -> None:
    ended = piped("--mcp", url, "--mcp-approval", "never", "--json", "-p", "Hello")
    assert ended.status == 0, ended.errors
    listed = json.loads(ended.output)["items"][0]
    assert [tool["name"] for tool in listed["tools"]] == ["add", "fail", "hang", "flood"]


@pytest.mark.parametrize("has_server", [True, False])
def test_a_header_has_its_secret_from_the_environment(
    server: RunningServer, url: str, locked: str, has_server: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMS_TOKEN", SECRET.removeprefix("Bearer "))
    arguments = ("--url", server.url) if has_server else ()
    servers = ("--mcp", f"sums={locked}", "--mcp", f"open={url}", "--mcp-approval", "never")
    header = ("--mcp-header", "sums=Authorization: Bearer ${SUMS_TOKEN}")
    ended = piped(*arguments, *servers, *header, "--json", "-p", "Hello")
    assert ended.status == 0, ended.errors
    items = json.loads(ended.output)["items"]
    assert [item["server_label"] for item in items[:2]] == ["sums", "open"]
    assert "s3cret" not in ended.output + ended.errors


def test_servers_and_their_tools_are_listed(chat: Chatting) -> None:
    with chat() as program:
        program.wait_for_prompt()
        program.enter("/mcp")
        program.wait_for("[asks; changes nothing, says the server] Adds.")
        program.enter(ADD)
        program.wait_for(QUESTION)
        program.press("a\r")
        program.wait_for("the sum is 5")
        program.enter("/mcp")
        program.wait_for("[runs without a question; changes nothing, says the server] Adds.")
        program.enter("/mcp ask")
        program.wait_for("all tools of MCP servers wait")
        program.enter(write_call("add", {"a": 20, "b": 3}).replace("\n", " "))
        program.wait_for(QUESTION, times=2)
        program.press("n\r")
        program.wait_for_prompt()


def test_a_chat_without_servers_says_how_to_name_them(
    server: RunningServer, tmp_path: Path
) -> None:
    with chatting("--url", server.url, state=tmp_path, columns=160) as program:
        program.enter("/mcp")
        program.wait_for("start it with --mcp URL")


def test_a_program_of_the_options_file_is_named_by_its_label(tmp_path: Path) -> None:
    program = {"label": "sums", "command": sys.executable, "args": ["-m", PROGRAM], "cwd": "."}
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps({"mcp_servers": [program]}))  # JSON is YAML too
    arguments = ("--config", str(path), "--mcp", "sums", "--mcp-approval", "never")
    ended = piped(*arguments, "--json", "-p", "Hello")
    assert ended.status == 0, ended.errors
    assert json.loads(ended.output)["items"][0]["server_label"] == "sums"
    ended = piped(*arguments, "--mcp", "wiki", "-p", "Hello")
    assert ended.status == 2
    assert "mcp_servers (sums), given 'wiki'" in ended.errors


def test_a_server_that_cannot_be_reached_is_named(
    server: RunningServer, gone: str, tmp_path: Path
) -> None:
    arguments = ("--url", server.url, "--mcp", f"gone={gone}")
    ended = piped(*arguments, "--mcp-approval", "never", "-p", "Hello")
    assert (ended.status, ended.output) == (1, "")
    assert "gone" in ended.errors
    assert ended.errors.count("\n") == 1
    with chatting(*arguments, state=tmp_path) as program:
        assert program.wait_for_end() == 1
        assert "gone" in program.seen()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--mcp", "http://x/mcp"), "--mcp: needs a conversation"),
        (("--mcp", "wiki", "--mcp-approval", "never"), "mcp_servers (none), given 'wiki'"),
        (("--mcp", "ftp://x", "--mcp-approval", "never"), "--mcp: must be a URL that begins"),
        (("--mcp", "a=b", "--mcp-approval", "never"), "--mcp: must be a URL that begins"),
        (("--mcp-approval", "sometimes"), "--mcp-approval"),
        (
            ("--mcp", "http://x/", "--mcp-approval", "never", "--mcp-header", "s3cret"),
            "--mcp-header: must be 'NAME: VALUE'",
        ),
        (
            ("--mcp", "http://x/", "--mcp-approval", "never", "--mcp-header", "A: ${NOT_SET_X}"),
            "--mcp-header: the environment has no variable NOT_SET_X",
        ),
        (
            (
                *("--mcp", "a=http://x/", "--mcp", "b=http://y/", "--mcp-approval", "never"),
                *("--mcp-header", "A: s3cret"),
            ),
            "--mcp-header: must be LABEL=A: VALUE, with the label of a URL of --mcp (a, b)",
        ),
        (
            ("--mcp", "time", "--mcp-approval", "never", "--mcp-header", "time=A: s3cret"),
            "--mcp-header: must name a server with a URL of --mcp (none), given 'time'",
        ),
    ],
)
def test_wrong_options_are_refused_in_one_line(arguments: tuple[str, ...], complaint: str) -> None:
    ended = piped(*arguments, "-p", "Hello")
    assert ended.status == 2
    assert complaint in ended.errors
    assert "s3cret" not in ended.errors


def test_servers_have_labels() -> None:
    values = ["http://a.example:80/mcp", "https://a.example:80/x", "wiki=http://[::1]/", "time"]
    servers = read_mcp_servers(values, asks=True, sends_urls=True)
    assert servers.labels == ["a-example-80", "a-example-80-2", "wiki", "time"]
    servers.allow("time", "now")
    assert servers.entries()[2:] == [
        {
            "type": "mcp",
            "server_label": "wiki",
            "server_url": "http://[::1]/",
            "require_approval": "always",
        },
        {
            "type": "mcp",
            "server_label": "time",
            "require_approval": {"never": {"tool_names": ["now"]}},
        },
    ]
    with pytest.raises(InvalidOption, match="names each server once, given 'time' again"):
        read_mcp_servers(["time", "time"], asks=True, sends_urls=True)


def test_messages_of_a_chat_become_items() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [picture, {"type": "text", "text": "Look"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "7"},
        {"role": "assistant", "content": "Seven", "items": [{"type": "mcp_list_tools"}]},
    ]
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    body = make_response_body(
        {"model": "m", "temperature": 0, "messages": messages, "tools": [tool]}, [{"type": "mcp"}]
    )
    assert body == {
        "model": "m",
        "temperature": 0,
        "store": False,
        "tools": [{"type": "function", "name": "f", "parameters": {}}, {"type": "mcp"}],
        "input": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "data:image/png;base64,AA"},
                    {"type": "input_text", "text": "Look"},
                ],
            },
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "7"},
            {"type": "mcp_list_tools"},
        ],
    }
