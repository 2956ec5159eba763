"""Sends requests under a load: a number of requests at once, requests per second, or both."""

import asyncio
import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ouzel.bench.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Load:
    """The rate at which conversations begin, and the limit of conversations at once."""

    request_rate: float = float("inf")  # conversations per second
    burstiness: float = 1.0
    max_concurrency: int | None = None  # None: no limit

    def __str__(self) -> str:
        rate = "" if self.request_rate == float("inf") else f"{self.request_rate:g} requests/s"
        limit = "" if self.max_concurrency is None else f"{self.max_concurrency} at once"
        return ", ".join(part for part in (rate, limit) if part) or "all at once"


async def send_all(
    conversations: Sequence[Conversation],
    load: Load,
    converse: Callable[[Conversation], Awaitable[None]],
    rng: random.Random,
) -> int:
    """Calls `converse` for each conversation when it is due, and waits for all of them.

    Returns their number. A cancellation cancels all conversations.
    """
    due_s = arrival_times(
        len(conversations), request_rate=load.request_rate, burstiness=load.burstiness, rng=rng
    )
    places = asyncio.Semaphore(load.max_concurrency or max(len(conversations), 1))

    async def converse_in_turn(conversation: Conversation) -> None:
        async with places:
            await converse(conversation)

    start_s = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for conversation, after_s in zip(conversations, due_s, strict=True):
            if (wait_s := start_s + after_s - time.perf_counter()) > 0:
                await asyncio.sleep(wait_s)
            tasks.create_task(converse_in_turn(conversation))
    return len(conversations)


def arrival_times(
    count: int, *, request_rate: float, burstiness: float, rng: random.Random
) -> list[float]:
    """Returns the seconds after the start at which the requests are due.

    The definitions are the definitions of `vllm bench serve`.

    The intervals have a gamma distribution of shape `burstiness` and mean 1 / `request_rate`.
    A shape of 1 gives a Poisson process; a lower shape gives bursts, a higher shape more even
    intervals. The times are scaled so that the last request is due at `count / request_rate`:
    every run then has exactly the given rate. At an infinite rate all requests are due at 0.
    """
    if math.isinf(request_rate) or count == 0:
        return [0.0] * count
    times = list(
        itertools.accumulate(rng.gammavariate(burstiness, 1 / burstiness) for _ in range(count))
    )
    scale = count / request_rate / times[-1] if times[-1] > 0 else 0.0
    return [time * scale for time in times]
