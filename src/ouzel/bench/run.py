"""Measures one run: all conversations under one load."""

import asyncio
import gc
import random
import time
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from ouzel.bench.conversation import Conversation, JsonObject
from ouzel.bench.load import Load, send_all
from ouzel.bench.measurement import Measurement
from ouzel.bench.progress import Progress
from ouzel.bench.target import Target

Result = TypeVar("Result")

_COLLECTION_THRESHOLDS = (50_000, 20, 100)


@dataclass(frozen=True, slots=True)
class Run:
    """The measurements of a run in the order of their starts.

    Requests without an answer when the run was stopped are left out.
    """

    load: Load
    num_prompts: int
    measurements: tuple[Measurement, ...]
    started_at: datetime
    start_s: float
    duration_s: float
    is_stopped: bool  # the run was stopped before its end


async def run_load(
    target: Target,
    conversations: Sequence[Conversation],
    load: Load,
    *,
    rng: random.Random,
    progress: Progress,
    stopping: asyncio.Event,
) -> Run:
    """Sends all conversations under the load, and measures until the end or until `stopping`."""
    measurements: list[Measurement] = []

    async def converse(conversation: Conversation) -> None:
        history: tuple[JsonObject, ...] = ()
        for turn in conversation.turns:
            progress.begin()
            measurement = await target.ask(turn, history, conversation.tools)
            measurements.append(measurement)
            progress.end(measurement)
            if not measurement.is_complete:
                return  # the next turn needs this answer
            answer = {"role": "assistant", "content": measurement.answer}
            history = (*history, *turn.messages, answer)

    with collect_rarely():
        started_at = datetime.now().astimezone()
        start_s = time.perf_counter()
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
    """Awaits `work` and returns its result, or cancels it and returns None if `stopping` is set.

    Raises the exceptions of `work`.
    """
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_stopped = not working.done()
        waiting.cancel()
        working.cancel()
        await asyncio.wait((working,))
    return None if is_stopped else working.result()


@contextmanager
def collect_rarely() -> Generator[None, None, None]:
    """Excludes existing objects from collections during the block, and collects new ones rarely.

    A collection over the objects of thousands of requests takes as long as some tokens, and would
    be measured as part of their times.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
