"""Logs the requests that a stopping server waits for, and the requests that it aborts."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from ouzel.api.http.open_exchanges import OpenRequest
from ouzel.observability import facts

logger = logging.getLogger(__name__)

_MAX_LISTED = 10
_PAUSES_S = (5.0, 10.0, 20.0, 40.0)  # pauses between log lines; the last pause repeats

Drain = Callable[[float], Awaitable[None]]
ListRequests = Callable[[], Sequence[OpenRequest]]


async def drain_with_log(
    drain: Drain,
    timeout_s: float,
    list_requests: ListRequests,
    pauses_s: Iterable[float] = _PAUSES_S,
) -> None:
    """Awaits `drain(timeout_s)`, and logs the open requests at the start and after each pause.

    `drain` aborts requests that are still open after the timeout.
    """
    if timeout_s <= 0:
        _log("stopping at once: aborting %s", list_requests())
        await drain(timeout_s)
        return
    _log(f"stopping: waiting up to {timeout_s:g} s for %s", list_requests())
    logging_lines = asyncio.create_task(_log_waiting(timeout_s, list_requests, pauses_s))
    try:
        await drain(timeout_s)
    finally:
        logging_lines.cancel()
        with suppress(asyncio.CancelledError):
            await logging_lines


async def _log_waiting(
    timeout_s: float, list_requests: ListRequests, pauses_s: Iterable[float]
) -> None:
    loop = asyncio.get_running_loop()
    begin_s = loop.time()
    *pauses, last = pauses_s
    for pause_s in itertools.chain(pauses, itertools.repeat(last)):
        left_s = begin_s + timeout_s - loop.time()
        await asyncio.sleep(min(pause_s, left_s))
        if pause_s >= left_s:
            _log(f"stopping: aborting after {timeout_s:g} s %s", list_requests())
            return
        _log(f"stopping: still waiting after {loop.time() - begin_s:.0f} s for %s", list_requests())


def _log(line: str, requests: Sequence[OpenRequest]) -> None:
    logger.info(line, _listed(requests), extra=facts(num_open_requests=len(requests)))


def _listed(requests: Sequence[OpenRequest]) -> str:
    """Returns the number of requests, and the oldest requests."""
    if not requests:
        return "0 open requests"
    oldest = sorted(requests, key=lambda request: request.arrival_s)
    shown = [str(request) for request in oldest[:_MAX_LISTED]]
    if len(oldest) > _MAX_LISTED:
        shown.append(f"and {len(oldest) - _MAX_LISTED} more")
    return f"{len(oldest)} open request{'' if len(oldest) == 1 else 's'} ({'; '.join(shown)})"
