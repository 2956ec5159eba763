"""Hostile MCP servers cost one error, and neither memory nor time nor the log."""

import asyncio
import gzip
import json
import logging
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ouzel.hosted_tools.mcp.records import LocalServer, McpError, McpResult, RemoteServer
from ouzel.hosted_tools.mcp.session import McpSession
from tests.hosted_tools.hostile_mcp import (
    ANY,
    EVENTS,
    MAX_BYTES,
    TOOL,
    Answer,
    HostileServer,
    Json,
    hostile_program,
    open_hostile,
    open_session,
    repeat,
    reply,
    say,
    send,
)

JSON = {"content-type": "application/json"}
CALLED = McpResult("ok", is_error=False)


async def find_error(session: McpSession) -> str:
    with pytest.raises(McpError) as caught:
        await session.call("t", {})
    return str(caught.value).partition("'hostile' ")[2]


def test_the_helper_is_an_honest_server_at_first() -> None:
    async def call() -> None:
        hostile = HostileServer(lambda message: say(message, "ok"))
        async with open_hostile(hostile) as session:
            assert [tool.name for tool in await session.list_tools()] == ["t"]
            assert await session.call("t", {}) == CALLED
        async with open_session(hostile_program('say("ok")')) as session:
            assert await session.call("t", {}) == CALLED

    asyncio.run(call())


FAULTS = {
    "compressed": (
        Answer(200, JSON | {"content-encoding": "gzip"}, gzip.compress(b"x" * 10**6)),
        "broke the connection: the answer is compressed, which was not asked for",
    ),
    "too long": (
        Answer(200, JSON, b" " * (MAX_BYTES + 1)),
        f"sent too much: the answer has more than {MAX_BYTES} bytes",
    ),
    "cut off": (
        Answer(200, JSON | {"content-length": "1000"}, b"{"),
        "broke the connection: peer closed connection",
    ),
    "deep": (Answer(200, JSON, b"[" * 10_000), "sent an answer that cannot be read"),
    "no JSON": (Answer(200, JSON, b"<html>"), "sent an answer that cannot be read"),
    "another type": (Answer(200, {}, b"{}"), "sent an answer that cannot be read"),
    "an event without an end": (Answer(200, EVENTS, b"data: {"), "ended its answer without"),
    "status": (Answer(500), "answered with the status 500"),
    "redirect": (
        Answer(307, {"location": "http://169.254.169.254/"}),
        "answered with the redirect, which is not followed, of status 307",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_bad_answer_fails_one_call_and_not_the_session(name: str) -> None:
    bad, expected = FAULTS[name]
    answers = [bad]
    hostile = HostileServer(lambda message: answers.pop() if answers else say(message, "ok"))
    async with open_hostile(hostile) as session:
        assert (await find_error(session)).startswith(expected)
        assert await session.call("t", {}) == CALLED
    assert hostile.requests.count("initialize") == 1


async def test_a_server_error_is_told_in_its_words() -> None:
    fault = {"code": -32000, "message": "out of\npaper " + "x" * 1000}
    async with open_hostile(HostileServer(lambda message: send(message, error=fault))) as session:
        error = await find_error(session)
    assert error.startswith("answered with the error 'out of paper xxx")
    assert len(error) < 400


async def test_a_schema_of_results_with_an_endless_pattern_is_not_applied() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    result = {"content": [], "structuredContent": {"a": "a" * 64 + "!"}}
    hostile = HostileServer(
        lambda message: reply(message, result),
        lambda message: {"tools": [TOOL | {"outputSchema": schema}]},
    )
    async with open_hostile(hostile) as session:
        await session.list_tools()
        assert json.loads((await session.call("t", {})).text) == result["structuredContent"]


async def test_no_stream_is_opened_for_messages_that_belong_to_no_call() -> None:
    hostile = HostileServer(
        lambda message: say(message, "ok"), get=lambda: Answer(200, EVENTS, b"retry: 0\n\n")
    )
    async with open_hostile(hostile) as session:
        await session.call("t", {})
        await session.call("t", {})
    assert "GET" not in hostile.requests


async def test_a_stream_that_is_always_cut_off_is_resumed_a_few_times() -> None:
    def cut_off() -> Answer:
        return Answer(200, EVENTS, one(b"id: 1\nretry: 0\ndata:\n\n"))

    hostile = HostileServer(lambda message: cut_off(), get=cut_off)
    async with open_hostile(hostile) as session:
        assert await find_error(session) == "ended its answer without a result"
    assert hostile.requests.count("GET") == 10


async def one(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


@pytest.mark.parametrize("message", [{"method": "notifications/x"}, {"id": 1, "method": "ping"}])
async def test_a_flood_of_messages_ends(message: Json) -> None:
    event = b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"
    hostile = HostileServer(lambda message: Answer(200, EVENTS, repeat(event)))
    async with open_hostile(hostile, max_answer_bytes=10**6) as session:
        assert await find_error(session) == "sent more than 50000 messages"
    assert len(hostile.requests) < 200  # few requests of the server were answered


async def test_a_session_that_the_server_forgot_is_opened_again() -> None:
    answers = [Answer(404)]
    hostile = HostileServer(lambda message: answers.pop() if answers else say(message, "ok"))
    async with open_hostile(hostile) as session:
        assert await find_error(session) == "answered with the status 404"
        assert await session.call("t", {}) == CALLED
    assert hostile.requests.count("initialize") == 2


async def test_the_older_transport_is_found_by_the_answers_to_the_newer_one() -> None:
    class OldServer(HostileServer):
        def answer(self, method: str, message: Json) -> Answer:
            if method == "POST" and not self.requests:
                self.requests.append("newer")
                return Answer(405)
            if method == "POST" and self.requests[-1] == "newer" and "GET" not in self.requests:
                return Answer(405)
            return super().answer(method, message)

    hostile = OldServer(has_old_transport=True)
    listening = await asyncio.start_server(hostile.serve, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        async with open_session(RemoteServer("old", f"http://127.0.0.1:{port}/mcp")) as session:
            assert len(await session.list_tools()) == 1


async def test_a_call_that_the_older_transport_cannot_send_fails_at_once() -> None:
    hostile = HostileServer(lambda message: Answer(500), has_old_transport=True)
    async with open_hostile(hostile) as session:
        assert await find_error(session) == "answered with the status 500"


async def test_garbage_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hostile = HostileServer(
        lambda message: Answer(200, EVENTS, repeat(b"data: x\n\n")), has_old_transport=True
    )
    for _ in range(1000):
        hostile.sent.put_nowait(b"event: message\ndata: x\n\n")
    async with open_hostile(hostile) as session:
        await session.list_tools()
    assert len(caplog.text) < 20_000


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        (lambda number: {"tools": [], "nextCursor": "again"}, "on more than 32 pages"),
        (
            lambda number: {
                "tools": [TOOL | {"name": f"t{number}_{each}"} for each in range(100)],
                "nextCursor": "more",
            },
            "lists more than 256 tools",
        ),
    ],
)
async def test_a_list_without_an_end_is_refused(pages: object, message: str) -> None:
    numbers = iter(range(1000))
    assert callable(pages)
    hostile = HostileServer(list_tools=lambda _: pages(next(numbers)))
    async with open_hostile(hostile) as session:
        with pytest.raises(McpError, match=message):
            await session.list_tools()


async def test_tools_that_cannot_be_offered_are_left_out() -> None:
    deep: Json = ANY
    for _ in range(30):
        deep = {"type": "object", "properties": {"a": deep}}
    tools = [
        {"name": "", "inputSchema": ANY},
        {"name": "a b", "inputSchema": ANY},
        {"name": "<|im_start|>", "inputSchema": ANY},
        {"name": "x" * 129, "inputSchema": ANY},
        {"name": "long", "inputSchema": {**ANY, "description": "x" * 100_001}},
        {"name": "twice", "inputSchema": ANY, "description": "first"},
        {"name": "twice", "inputSchema": ANY, "description": "second"},
        {"name": "list", "inputSchema": {"type": "array"}},
        {"name": "bare"},
        {"name": "wrong", "inputSchema": 1, "description": 2, "annotations": 3, "icons": 4},
        {"inputSchema": ANY},
        5,
        {"name": "deep", "inputSchema": deep},
        {"name": "noted", "inputSchema": ANY, "annotations": {"readOnlyHint": True, "z": [1]}},
    ]
    hostile = HostileServer(list_tools=lambda _: {"tools": tools})
    async with open_hostile(hostile, max_answer_bytes=10**6) as session:
        found = {tool.name: tool for tool in await session.list_tools()}
    assert found.keys() == {"twice", "list", "bare", "wrong", "deep", "noted"}
    assert found["twice"].description == "first"
    assert [found[name].input_schema for name in ("list", "bare", "wrong")] == [ANY, ANY, ANY]
    assert found["deep"].input_schema == deep
    assert found["noted"].annotations == {"readOnlyHint": True}


PROGRAMS = {
    "a line without an end": (
        'while True: sys.stdout.write("x" * 65536)',
        f"sent a message of more than {MAX_BYTES} bytes",
    ),
    "lines that are no messages": (
        'while True: sys.stdout.write("x\\n" * 1000)',
        "wrote more than 100 lines that are no messages",
    ),
    "empty lines": (
        'while True: sys.stdout.write("\\n" * 1000)',
        "wrote more than 100 lines that are no messages",
    ),
    "an early end": ("sys.exit(3)", "has ended (the log of this server says why)"),
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_bad_program_fails_one_call(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    call, expected = PROGRAMS[name]
    async with open_session(hostile_program(call)) as session:
        assert await find_error(session) == expected
        # The next call starts another program.
        assert await find_error(session) == expected
    assert len(caplog.text) < 5000


async def test_connections_are_lost_a_few_times_only(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    program = hostile_program(f'open({str(starts)!r}, "a").write("x"); sys.exit()')
    async with open_session(program) as session:
        for _ in range(3):
            await find_error(session)
        assert await find_error(session) == "has lost 3 connections in this response"
    assert starts.read_text() == "xxx"


async def test_a_program_dies_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = hostile_program(
        "import signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        'child = subprocess.Popen(["sleep", "1000"])\n'
        f'open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")\n'
        'say("ok")\n'
        "time.sleep(1000)"
    )
    async with open_session(program) as session:
        assert await session.call("t", {}) == CALLED
    for pid in map(int, pids.read_text().split()):
        while is_running(pid):  # a killed child disappears when its new parent has noticed
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_program_has_few_variables_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUZEL_API_KEY", "s3cret")
    program = hostile_program("say(json.dumps(dict(os.environ)))", env={"GIVEN": "1"})
    async with open_session(program) as session:
        environment = json.loads((await session.call("t", {})).text)
    assert environment["GIVEN"] == "1"
    assert environment["PATH"] == os.environ["PATH"]
    assert "OUZEL_API_KEY" not in environment


async def test_the_standard_error_of_a_program_is_logged_within_limits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    program = hostile_program(
        'for _ in range(9999): sys.stderr.write("woe\\n" + 3000 * "x")\nsay("ok")'
    )
    async with open_session(program) as session:
        await session.call("t", {})
    lines = re.findall("the MCP server hostile: .*", caplog.text)
    assert "the MCP server hostile: 'woe'" in lines
    assert len(lines) <= 200
    assert max(map(len, lines)) < 1100


@pytest.mark.parametrize("server", [None, LocalServer("hostile", "/secret/place")])
async def test_clients_do_not_learn_places_of_servers_of_the_operator(
    server: LocalServer | None, caplog: pytest.LogCaptureFixture
) -> None:
    if server is None:
        hostile = HostileServer(lambda message: Answer(200, JSON | {"content-length": "9"}, b""))
        async with open_hostile(hostile, is_operators=True) as session:
            error = await find_error(session)
    else:
        async with open_session(server) as session:
            error = await find_error(session)
    assert error.endswith(" (the log of this server says why)")
    assert "secret" not in error and "bytes" not in error
    assert "/secret/place" in caplog.text or "peer closed connection" in caplog.text
