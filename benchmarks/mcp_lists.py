"""Times chats with a tool of an MCP program, with and without stored lists and idle programs.

    uv run python -m benchmarks.mcp_lists path/to/mcp-server-time [--rounds 15]

Two servers run for the whole time with the demo model. The first has the defaults; the second
lists the tools for each chat and keeps no program (`--mcp-list-age-s 0 --mcp-program-idle-s 0`). A
round asks both for a chat of 4 tokens, in turns. A second measurement makes a call as a response
does, in this process. The program prints medians and extremes as a table in Markdown.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx

from benchmarks.server import running_server
from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.mcp.records import LocalServer
from ouzel.hosted_tools.mcp.server_access import McpServers

NAMES = ("stored", "listed anew")
CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_completion_tokens": 4}


def time_chats(program: Path, num_rounds: int) -> dict[str, list[float]]:
    """Returns the seconds of chats after the first one, by server."""
    seconds: dict[str, list[float]] = {name: [] for name in NAMES}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        config = Path(directory) / "ouzel.yaml"
        servers = [{"label": "time", "command": str(program)}]
        config.write_text(json.dumps({"mcp_servers": servers, "chat_tools": ["mcp:time"]}))
        clients: dict[str, httpx.Client] = {}
        for name in NAMES:
            flags = ["--config", str(config)]
            if name != NAMES[0]:
                flags += ["--mcp-list-age-s", "0", "--mcp-program-idle-s", "0"]
            url, _ = stack.enter_context(running_server(flags))
            client = clients[name] = stack.enter_context(httpx.Client(base_url=url, timeout=60.0))
            client.post("/v1/chat/completions", json=CHAT).raise_for_status()
        for number in range(num_rounds):
            for name in NAMES if number % 2 == 0 else NAMES[::-1]:
                start_s = time.perf_counter()
                clients[name].post("/v1/chat/completions", json=CHAT).raise_for_status()
                seconds[name].append(time.perf_counter() - start_s)
    return seconds


async def time_calls(program: Path, num_rounds: int) -> dict[str, list[float]]:
    """Returns the seconds in which a response lists the tools and calls one."""
    seconds: dict[str, list[float]] = {name: [] for name in NAMES}
    server = LocalServer("time", str(program))
    kept = {
        name: McpServers(
            read_media_hosts(("all",)),
            timeout_s=60.0,
            max_answer_bytes=2**20,
            max_programs=16,
            max_list_age_s=seconds_kept,
            program_idle_s=seconds_kept,
        )
        for name, seconds_kept in zip(NAMES, (3600.0, 0.0), strict=True)
    }
    for number in range(num_rounds + 1):
        for name in NAMES if number % 2 == 0 else NAMES[::-1]:
            start_s = time.perf_counter()
            access = kept[name].access(server, None)
            await access.list_tools()
            result = await access.call("get_current_time", {"timezone": "UTC"})
            assert not result.is_error, result.text
            if number > 0:  # the first round also imports packages
                seconds[name].append(time.perf_counter() - start_s)
            access.close()
    for servers in kept.values():
        await servers.close()
    return seconds


def write_row(name: str, seconds: dict[str, list[float]]) -> str:
    return " | ".join(["", name, *(_write_spread(seconds[each]) for each in NAMES), ""]).strip()


def _write_spread(seconds: Sequence[float]) -> str:
    median, low, high = (1000 * f(seconds) for f in (statistics.median, min, max))
    return f"{median:.0f} ms ({low:.0f} to {high:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="an MCP server that has get_current_time")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    program = arguments.program.absolute()
    print("|", " | ".join(["", *NAMES]), "|")
    print("|---|---:|---:|")
    print(write_row("a chat that calls nothing", time_chats(program, arguments.rounds)))
    calls = asyncio.run(time_calls(program, arguments.rounds))
    print(write_row("the list and a call", calls))


if __name__ == "__main__":
    main()
