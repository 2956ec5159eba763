"""One run: all conversations under one load, measured."""

import asyncio
import random
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from ouzel.bench.conversation import Conversation, JsonObject
from ouzel.bench.garbage_collection import seldom_collected
from ouzel.bench.load import Load, send_all
from ouzel.bench.measurement import Measurement
from ouzel.bench.progress import Progress
from ouzel.bench.target import Target

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Run:
    """Measurements are in the order of their starts. What had no answer when a run was stopped is not among them."""

    load: Load
    num_prompts: int
    measurements: tuple[Measurement, ...]
    started_at: datetime
    start_s: float
    duration_s: float
    is_stopped: bool  # before all was asked


async def run_load(
    target: Target,
    conversations: Sequence[Conversation],
    load: Load,
    *,
    rng: random.Random,
    progress: Progress,
    stopping: asyncio.Event,
) -> Run:
    """Ends when all is answered, or `stopping` is set."""
    measurements: list[Measurement] = []

    async def converse(conversation: Conversation) -> None:
        history: tuple[JsonObject, ...] = ()
        for turn in conversation.turns:
            progress.begin()
            measurement = await target.ask(turn, history, conversation.tools)
            measurements.append(measurement)
            progress.end(measurement)
            if not measurement.is_complete:
                return  # what would follow has no answer to follow
            history = (
                *history,
                *turn.messages,
                {"role": "assistant", "content": measurement.answer},
            )

    with seldom_collected():
        started_at, start_s = datetime.now().astimezone(), time.perf_counter()
        sent = await unless_stopped(stopping, send_all(conversations, load, converse, rng))
        duration_s = time.perf_counter() - start_s
    return Run(
        load=load,
        num_prompts=sum(len(each.turns) for each in conversations),
        measurements=tuple(sorted(measurements, key=lambda each: each.start_s)),
        started_at=started_at,
        start_s=start_s,
        duration_s=duration_s,
        is_stopped=sent is None,
    )


async def unless_stopped(
    stopping: asyncio.Event, work: Coroutine[None, None, Result]
) -> Result | None:
    """Does the work, and returns None where it was cut short. Raises what it raises."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_stopped = not working.done()
        waiting.cancel()
        working.cancel()
        await asyncio.wait((working,))
    return None if is_stopped else working.result()
