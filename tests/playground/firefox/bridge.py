"""Stands between Playwright and Firefox: both speak WebDriver BiDi, but of different years.

Playwright starts this program in the place of Firefox. It starts Firefox with the same arguments,
passes each message on, and changes a few: a command that Firefox does not know yet gets an empty
answer if tests do without it, and each download gets an id.

python -m tests.playground.firefox.bridge FIREFOX ARGUMENT ...
"""

import asyncio
import json
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any  # JSON

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

_LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
# Firefox ESR knows no emulated colour scheme: the tests set it by a preference of the profile.
_DISPENSABLE = {"emulation.setMediaFeaturesOverride"}
# Playwright wants an id of each download.
_DOWNLOADS = {"browsingContext.downloadWillBegin", "browsingContext.downloadEnd"}


async def _run(command: list[str]) -> int:
    firefox = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, firefox.terminate)
    assert firefox.stderr is not None
    async for line in firefox.stderr:
        found = _LISTENS.search(line.decode(errors="replace"))
        if found is None:
            sys.stderr.write(line.decode(errors="replace"))
            continue
        server = await serve(_pass_on_to(found[1]), "127.0.0.1", 0, max_size=None)
        port = server.sockets[0].getsockname()[1]
        sys.stderr.write(f"WebDriver BiDi listening on ws://127.0.0.1:{port}\n")
        sys.stderr.flush()
    return await firefox.wait()


def _pass_on_to(address: str) -> Callable[[ServerConnection], Awaitable[None]]:
    async def handle(playwright: ServerConnection) -> None:
        path = playwright.request.path if playwright.request is not None else ""
        async with connect(address + path, max_size=None) as firefox:
            unneeded: set[int] = set()
            back = asyncio.create_task(_take_answers(firefox, playwright, unneeded))
            async for message in playwright:
                command = json.loads(message)
                if command["method"] in _DISPENSABLE:
                    unneeded.add(command["id"])
                await firefox.send(message)
            back.cancel()

    return handle


async def _take_answers(
    firefox: ClientConnection, playwright: ServerConnection, unneeded: set[int]
) -> None:
    async for message in firefox:
        text = message if isinstance(message, str) else message.decode()
        if unneeded or "browsingContext.download" in text:
            text = json.dumps(_translate(json.loads(text), unneeded))
        await playwright.send(text)
    await playwright.close()


def _translate(message: dict[str, Any], unneeded: set[int]) -> dict[str, Any]:
    """Returns an answer or an event of Firefox as a newer Firefox would send it."""
    if message.get("method") in _DOWNLOADS:
        params = message["params"]
        return message | {"params": {"download": params["url"], **params}}
    if message.get("id") not in unneeded:
        return message
    unneeded.discard(message["id"])
    if message.get("error") != "unknown command":
        return message
    return {"type": "success", "id": message["id"], "result": {}}


if __name__ == "__main__":
    sys.exit(asyncio.run(_run(sys.argv[1:])))
