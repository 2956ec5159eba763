"""Requests are sent in turn, within the limit of concurrency, until the run is stopped."""

import asyncio
import io
import os
import random
import termios

import pytest

from ouzel.bench.conversation import Conversation, user_turn
from ouzel.bench.endpoints import CHAT, Form
from ouzel.bench.load import Load, send_all
from ouzel.bench.measurement import Measurement
from ouzel.bench.progress import Progress, show_progress
from ouzel.bench.run import Run, run_load
from ouzel.bench.target import Target
from ouzel.client.http_client import HttpClient
from tests.api.server_setup import MODEL
from tests.api.serving import running_server
from tests.bench.measurements import measurement

TEXTS = [f"number {number}" for number in range(12)]


def conversation(*texts: str, max_tokens: int = 5) -> Conversation:
    return Conversation(
        tuple(user_turn(text, max_tokens=max_tokens, input_len=len(text)) for text in texts)
    )


async def most_at_once(load: Load) -> int:
    running = most = 0

    async def converse(_: Conversation) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    await send_all([conversation(text) for text in TEXTS], load, converse, random.Random(1))
    return most


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (None, len(TEXTS)), (100, len(TEXTS))])
async def test_no_more_go_on_at_once_than_may(limit: int | None, most: int) -> None:
    assert await most_at_once(Load(max_concurrency=limit)) == most


async def test_a_limit_holds_with_a_rate_too() -> None:
    assert await most_at_once(Load(request_rate=10_000.0, max_concurrency=2)) <= 2


async def test_requests_of_a_rate_begin_when_they_are_due() -> None:
    loop = asyncio.get_running_loop()
    begun_s: list[float] = []

    async def converse(_: Conversation) -> None:
        begun_s.append(loop.time())

    start_s = loop.time()
    await send_all(
        [conversation(text) for text in TEXTS], Load(request_rate=50.0), converse, random.Random(1)
    )
    # The loop's timers have a resolution of milliseconds.
    assert begun_s[-1] - start_s >= len(TEXTS) / 50.0 - 0.005
    assert begun_s == sorted(begun_s)


class StopsAtTheFirst(Progress):
    """A progress display that stops the run after the first answer."""

    def __init__(self, stopping: asyncio.Event) -> None:
        super().__init__(1)
        self._stopping = stopping

    def end(self, measurement: Measurement) -> None:
        super().end(measurement)
        self._stopping.set()


async def run_conversations(
    *conversations: Conversation, stops_at_the_first: bool = False, step_s: float = 0.0
) -> Run:
    with running_server({"step_s": step_s}) as server:
        client = HttpClient(server.url)
        target = Target(client, CHAT, MODEL, Form(ignores_eos=False), {})
        stopping = asyncio.Event()
        progress = StopsAtTheFirst(stopping) if stops_at_the_first else Progress(1)
        try:
            return await run_load(
                target,
                conversations,
                Load(),
                rng=random.Random(1),
                progress=progress,
                stopping=stopping,
            )
        finally:
            await client.close()


async def test_turns_bring_all_that_was_said_and_answered() -> None:
    run = await run_conversations(conversation("abc", "defg", max_tokens=50))
    first, second = run.measurements
    assert (first.answer, second.answer) == ("abc", "defg")
    assert second.input_len > first.input_len + len("defg")
    assert second.start_s >= first.end_s
    assert not run.is_stopped


async def test_a_turn_that_fails_has_no_successor() -> None:
    run = await run_conversations(
        conversation("a|fail|b", "never", max_tokens=50), conversation("fine", max_tokens=50)
    )
    assert sorted(bool(each.error) for each in run.measurements) == [False, True]
    assert run.num_prompts == 3


async def test_a_stopped_run_has_the_answers_so_far() -> None:
    long = conversation("x" * 2000, max_tokens=2000)
    run = await run_conversations(conversation("ab"), long, stops_at_the_first=True, step_s=0.005)
    assert [each.answer for each in run.measurements] == ["ab"]
    assert run.is_stopped


def test_progress_shows_running_and_failed_requests() -> None:
    progress = Progress(4)
    for _ in range(3):
        progress.begin()
    progress.end(measurement(0.0, (0.1,), output_len=5))
    progress.end(measurement(0.0, (0.1,), output_len=5, error="no"))
    assert " 2/4, 1 failed, 1 running, " in progress.line()


async def test_a_line_is_no_longer_than_the_terminal() -> None:
    keyboard, screen = os.openpty()
    termios.tcsetwinsize(screen, (24, 40))
    with os.fdopen(screen, "w", encoding="utf-8") as stream:
        async with show_progress(Progress(1), stream):
            await asyncio.sleep(0)
        drawn = os.read(keyboard, 1000).decode()
    os.close(keyboard)
    assert len(drawn.split("\x1b[K")[1].rstrip("\r")) == 39


async def test_lines_tell_of_the_progress_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    async with show_progress(Progress(1), stream):
        await asyncio.sleep(0)
    assert stream.getvalue().startswith("0/1, 0 running, 0.0 tokens/s")
    assert stream.getvalue().endswith(" s\n")
    assert "\r" not in stream.getvalue()
