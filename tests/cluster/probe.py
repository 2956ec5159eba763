"""`python -m tests.cluster.probe NAME=URL NAME=URL[,URL] ...` compares servers.

Each server has a store and the models of `tests.cluster.probed_models`. Of several URLs, which
share a store, each request goes to the next. The command compares the other servers with the first.
The exit status is 1 if an outcome differs that `--allow` does not name.
"""

import argparse
import asyncio
import itertools
import json
import sys
from collections.abc import Sequence
from typing import Any  # JSON

import httpx

from tests.cluster.probes import PROBES

_SHOWN = 300


class Alternating(httpx.AsyncBaseTransport):
    """A transport that gives each request to the next of several servers."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = itertools.cycle([httpx.URL(url) for url in urls])
        self._transport = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = next(self._urls)
        request.url = request.url.copy_with(host=url.host, port=url.port)
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


async def run_probes(urls: Sequence[str]) -> dict[str, Any]:
    """Runs all probes and returns their outcomes; the keys are the names of the probes."""
    async with httpx.AsyncClient(
        base_url=urls[0], timeout=None, transport=Alternating(urls)
    ) as http:
        found = {}
        for name, check in PROBES.items():
            try:
                found[name] = json.loads(json.dumps(await check(http)))
            except (httpx.HTTPError, KeyError, ValueError, TypeError, OSError) as error:
                found[name] = f"{name} cannot be tried: {error!r}"
    return found


def find_differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Returns, for each probe that differs, both outcomes from the first difference on."""
    return {name: _shown(one[name], other[name]) for name in one if one[name] != other[name]}


def _shown(one: Any, other: Any) -> tuple[str, str]:
    texts = json.dumps(one), json.dumps(other)
    same = next(
        (i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts))
    )
    begin = max(0, same - 60)
    return texts[0][begin : begin + _SHOWN], texts[1][begin : begin + _SHOWN]


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers", nargs="+", metavar="NAME=URL[,URL]")
    parser.add_argument("--allow", action="append", default=[], metavar="WHAT", help="may differ")
    arguments = parser.parse_args()
    servers = {
        name: urls.split(",")
        for name, _, urls in (text.partition("=") for text in arguments.servers)
    }
    outcomes = {name: await run_probes(urls) for name, urls in servers.items()}
    first, *others = outcomes
    failed = [
        what
        for what, found in outcomes[first].items()
        if str(found).startswith(f"{what} cannot be tried")
    ]
    for what in failed:
        sys.stdout.write(f"{outcomes[first][what]}\n")
    has_failed = bool(failed)
    for name in others:
        found = find_differences(outcomes[first], outcomes[name])
        sys.stdout.write(f"{name}: {len(PROBES) - len(found)} of {len(PROBES)} as {first}\n")
        for what, (one, other) in found.items():
            sys.stdout.write(f"  {what}\n    {first}: {one}\n    {name}: {other}\n")
        has_failed |= bool(set(found) - set(arguments.allow))
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
