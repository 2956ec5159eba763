"""Lists of tools and programs of MCP servers serve several responses, within limits."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.mcp.records import LocalServer, McpError, McpServer, McpTool, RemoteServer
from ouzel.hosted_tools.mcp.server_access import McpServers
from ouzel.hosted_tools.mcp.tool_lists import ToolLists
from tests.hosted_tools.counting_program import PROGRAM_TEXT

OPERATORS = RemoteServer("sums", "http://sums.example/mcp", {}, is_operators=True)
URL = "http://sums.example/mcp"


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Lists:
    """Stored lists, with a count of the times that a server was asked."""

    def __init__(self, *, max_age_s: float = 300.0, num_chars: int = 10) -> None:
        self.clock = Clock()
        self.lists = ToolLists(max_age_s=max_age_s, clock=self.clock)
        self.num_chars = num_chars
        self.num_asked = 0

    async def find(self, server: McpServer, key_id: str | None = None) -> bool:
        """Returns whether the list was a stored one."""
        num_asked = self.num_asked
        await self.lists.find_or_list(server, key_id, self._ask)
        return num_asked == self.num_asked

    async def _ask(self) -> Sequence[McpTool]:
        self.num_asked += 1
        return [McpTool("add", None, {}, None, self.num_chars)]


def clients(url: str = URL, **headers: str) -> RemoteServer:
    return RemoteServer("any", url, headers)


async def test_the_list_of_a_configured_server_serves_all_keys() -> None:
    lists = Lists()
    assert not await lists.find(OPERATORS, "a")
    assert await lists.find(OPERATORS, "b")
    assert await lists.find(OPERATORS)


async def test_the_list_of_a_url_serves_the_same_key_and_secret_only() -> None:
    lists = Lists()
    assert not await lists.find(clients(Authorization="Bearer one"), "a")
    assert await lists.find(clients(authorization="Bearer one"), "a")
    assert not await lists.find(clients(Authorization="Bearer two"), "a")
    assert not await lists.find(clients(), "a")
    assert not await lists.find(clients(Authorization="Bearer one"), "b")
    assert not await lists.find(clients(URL + "?tenant=2", Authorization="Bearer one"), "a")
    assert not await lists.find(OPERATORS, "a")


async def test_no_secret_is_kept() -> None:
    lists = Lists()
    await lists.find(clients(Authorization="Bearer s3cret"), "a")
    assert "s3cret" not in repr(vars(lists.lists))


async def test_a_list_has_an_end() -> None:
    lists = Lists(max_age_s=300.0)
    await lists.find(OPERATORS)
    await lists.find(clients())
    lists.clock.now_s = 59.0
    assert await lists.find(clients())
    lists.clock.now_s = 61.0
    assert not await lists.find(clients())
    lists.clock.now_s = 299.0
    assert await lists.find(OPERATORS)
    lists.clock.now_s = 301.0
    assert not await lists.find(OPERATORS)


async def test_no_list_is_kept_with_an_age_of_zero() -> None:
    lists = Lists(max_age_s=0.0)
    await lists.find(OPERATORS)
    assert not await lists.find(OPERATORS)


async def test_clients_cannot_fill_the_memory_and_push_out_configured_servers() -> None:
    lists = Lists(num_chars=2_000_000)
    await lists.find(OPERATORS)
    for number in range(5):
        await lists.find(clients(f"{URL}/{number}"))
    assert await lists.find(clients(f"{URL}/4"))
    assert await lists.find(OPERATORS)
    assert not await lists.find(clients(f"{URL}/0"))


async def test_the_number_of_lists_of_clients_has_a_limit() -> None:
    lists = Lists()
    for number in range(257):
        await lists.find(clients(f"{URL}/{number}"))
    assert await lists.find(clients(f"{URL}/1"))
    assert not await lists.find(clients(f"{URL}/0"))


async def test_a_list_that_changes_on_its_way_is_not_kept() -> None:
    lists = ToolLists(max_age_s=300.0)

    async def list_and_change() -> Sequence[McpTool]:
        lists.drop(OPERATORS, None)
        return []

    async def list_again() -> Sequence[McpTool]:
        return [McpTool("new", None, {}, None, 1)]

    assert await lists.find_or_list(OPERATORS, None, list_and_change) == []
    assert len(await lists.find_or_list(OPERATORS, None, list_again)) == 1


async def test_a_failure_is_not_kept() -> None:
    lists = Lists()

    async def fail() -> Sequence[McpTool]:
        raise McpError("gone")

    with pytest.raises(McpError):
        await lists.lists.find_or_list(OPERATORS, None, fail)
    assert not await lists.find(OPERATORS)


@pytest.fixture
def program(tmp_path: Path) -> LocalServer:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM_TEXT)
    log = tmp_path / "log"
    log.write_text("")
    return LocalServer("counting", sys.executable, (str(path), str(log)))


def read_log(program: LocalServer) -> list[str]:
    """Returns the events of all programs: starts, and the methods of requests."""
    return Path(program.args[1]).read_text().split()


@asynccontextmanager
async def opened_servers(
    *, idle_s: float = 3600.0, max_programs: int = 16
) -> AsyncIterator[McpServers]:
    servers = McpServers(
        read_media_hosts(("all",)),
        timeout_s=60.0,
        max_answer_bytes=100_000,
        max_programs=max_programs,
        max_list_age_s=3600.0,
        program_idle_s=idle_s,
    )
    try:
        yield servers
    finally:
        await servers.close()


async def use(servers: McpServers, program: LocalServer, tool: str, key_id: str | None) -> str:
    """Lists the tools and calls one of them, as a response does."""
    access = servers.access(program, key_id)
    try:
        await access.list_tools()
        return (await access.call(tool, {})).text
    finally:
        access.close()


async def test_a_second_response_starts_and_lists_nothing(program: LocalServer) -> None:
    async with opened_servers() as servers:
        assert await use(servers, program, "count", "a") == "1"
        assert await use(servers, program, "count", "a") == "2"
        log = read_log(program)
    assert (log.count("start"), log.count("tools/list")) == (1, 1)


async def test_keys_share_the_list_but_no_program(program: LocalServer) -> None:
    async with opened_servers() as servers:
        assert await use(servers, program, "count", "a") == "1"
        assert await use(servers, program, "count", "b") == "1"
        assert await use(servers, program, "count", None) == "1"
        log = read_log(program)
    assert (log.count("start"), log.count("tools/list")) == (3, 1)


async def test_responses_at_the_same_time_have_programs_of_their_own(program: LocalServer) -> None:
    async with opened_servers() as servers:
        first, second = servers.access(program, "a"), servers.access(program, "a")
        texts = [(await access.call("count", {})).text for access in (first, second)]
        first.close()
        second.close()
    assert texts == ["1", "1"]


async def test_no_program_outlives_its_response_without_idle_time(program: LocalServer) -> None:
    async with opened_servers(idle_s=0.0) as servers:
        assert await use(servers, program, "count", "a") == "1"
        assert await use(servers, program, "count", "a") == "1"


async def test_an_idle_program_ends_after_its_time(program: LocalServer) -> None:
    async with opened_servers(idle_s=0.001) as servers:
        await use(servers, program, "count", "a")
        while "end" not in read_log(program):
            await asyncio.sleep(0.001)


async def test_an_idle_program_makes_room_for_another_key(program: LocalServer) -> None:
    async with opened_servers(max_programs=1) as servers:
        assert await use(servers, program, "count", "a") == "1"
        assert await use(servers, program, "count", "b") == "1"
        assert await use(servers, program, "count", "a") == "1"


async def test_a_program_with_an_unfinished_call_is_not_used_again(program: LocalServer) -> None:
    async with opened_servers() as servers:
        access = servers.access(program, "a")
        await access.call("count", {})
        call = asyncio.create_task(access.call("hang", {}))
        while "hang" not in read_log(program):
            await asyncio.sleep(0.001)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        access.close()
        assert await use(servers, program, "count", "a") == "1"


async def test_a_program_that_ended_while_idle_is_replaced(program: LocalServer) -> None:
    async with opened_servers() as servers:
        access = servers.access(program, "a")
        session = access._open_session()
        assert (await access.call("end_soon", {})).text == "soon"
        access.close()
        while session.is_reusable:
            await asyncio.sleep(0.001)
        assert await use(servers, program, "count", "a") == "1"


@pytest.mark.parametrize("tool", ["fail", "unknown"])
async def test_a_failed_call_drops_the_list(program: LocalServer, tool: str) -> None:
    async with opened_servers() as servers:
        access = servers.access(program, "a")
        await access.list_tools()
        try:
            assert (await access.call(tool, {})).is_error
        except McpError as error:
            assert tool == "unknown" and "no tool" in str(error)
        access.close()
        await use(servers, program, "count", "a")
    assert read_log(program).count("tools/list") == 2


async def test_a_notice_of_changed_tools_drops_the_list(program: LocalServer) -> None:
    async with opened_servers() as servers:
        await use(servers, program, "change", "a")
        access = servers.access(program, "a")
        await access.call("count", {})  # takes the idle program
        names = [tool.name for tool in await access.list_tools()]
        access.close()
    assert "new" in names
