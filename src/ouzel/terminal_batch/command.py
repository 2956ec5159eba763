"""Runs `ouzel batch`: a file of requests, on a server or with a model in this process."""

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from typing import Any  # coroutines

import uvloop

from ouzel.serve.signals import stop_signals
from ouzel.terminal_batch.flags import BatchFlags, batch_flags, read_batch_flags
from ouzel.terminal_batch.result_paths import ResultPaths, name_results

_STOPPED = 130  # exit status of a program that Ctrl-C has ended


def run(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status. Raises OuzelError."""
    flags, rest = read_batch_flags(arguments)
    paths = name_results(flags.file, flags.output)
    if flags.url:
        return uvloop.run(_unless_stopped(_run_on_server(flags, paths), _describe_server(paths)))
    return _run_here(paths, rest)


async def _run_on_server(flags: BatchFlags, paths: ResultPaths) -> int:
    from ouzel.client.http_client import HttpClient, tls_context  # noqa: PLC0415  only with --url
    from ouzel.terminal_batch.on_server import ServerBatch  # noqa: PLC0415  only with --url

    api_key = flags.api_key or os.environ.get("OPENAI_API_KEY", "")
    client = HttpClient(flags.url, api_key=api_key, tls=tls_context(ca_file=flags.ca_file))
    try:
        batch = ServerBatch(client, paths, window=flags.window)
        return await (batch.cancel() if flags.cancel else batch.run())
    finally:
        await client.close()


def _run_here(paths: ResultPaths, rest: Sequence[str]) -> int:
    from ouzel.serve import in_process_app as app  # noqa: PLC0415  only without --url
    from ouzel.terminal_batch.in_process import OwnBatch, read_input  # noqa: PLC0415  as above

    endpoint, lines = read_input(paths.input)
    options, model = app.read_own_model(rest, command="batch", other_flags=batch_flags())

    async def run_lines() -> int:
        async with app.in_process_app(options, model) as api:
            return await OwnBatch(paths, endpoint, lines).run(api)

    return uvloop.run(_unless_stopped(run_lines(), _describe_partial(paths)))


async def _unless_stopped(work: Coroutine[Any, Any, int], message: str) -> int:
    """Runs the work to its end; after Ctrl-C or SIGTERM it is cancelled, and the message shown."""
    stopping, _ = stop_signals()
    working = asyncio.create_task(work)
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    sys.stderr.write(f"ouzel: {message}\n")
    return _STOPPED


def _describe_server(paths: ResultPaths) -> str:
    return (
        f"the server goes on with the batch; the same command waits for it again, and --cancel "
        f"cancels it ({paths.state})"
    )


def _describe_partial(paths: ResultPaths) -> str:
    return f"stopped; the same command goes on behind the results in {paths.partial}"
