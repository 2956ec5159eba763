"""Tests a pool of fake engines in processes: its choices, and the death of an engine."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import product

import psutil
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import Engine
from ouzel.engine.core import EngineCore
from ouzel.engine_client import EngineClient, EnginePool, EngineSpec, EngineState
from ouzel.errors import EngineFailed, EngineUnavailable, ModelLoadError, Overloaded
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput
from tests.engine.requests import make_request
from tests.engine_client.test_client import find_engine_processes

FATAL = 666


@asynccontextmanager
async def running_pool(
    num: int = 2, *, max_queued_requests: int = 256, **options: object
) -> AsyncIterator[EnginePool]:
    """Opens a pool of engines that die when they read the token FATAL."""
    spec = EngineSpec(
        factory="ouzel.backends.fake:create_engine",
        options={"step_s": 0.002, "fatal_token_id": FATAL, **options},
        heartbeat_every_s=0.25,
    )
    pool = EnginePool(
        [EngineClient(spec) for _ in range(num)], max_queued_requests=max_queued_requests
    )
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()


async def read_all(pool: EnginePool, request: EngineRequest) -> list[StepOutput]:
    return [output async for outputs in pool.submit(request) for output in outputs]


def join_token_ids(outputs: list[StepOutput]) -> list[int]:
    return [token_id for output in outputs for token_id in output.token_ids]


def count_open(pool: EnginePool) -> list[int]:
    return [len(member.open_request_ids) for member in pool.members]


async def wait_for_state(client: EngineClient, state: EngineState) -> None:
    while client.state is not state:
        await asyncio.sleep(0.001)


async def test_simultaneous_requests_are_shared_out_and_whole() -> None:
    async with running_pool() as pool:
        requests = [make_request([i, i + 1] * 20, max_tokens=40) for i in range(32)]
        reading = [asyncio.create_task(read_all(pool, request)) for request in requests]
        while sum(count_open(pool)) < len(requests):
            await asyncio.sleep(0)
        shares = count_open(pool)
        answers = await asyncio.gather(*reading)

    assert shares == [16, 16]
    assert [join_token_ids(outputs) for outputs in answers] == [
        ([i, i + 1] * 20)[:40] for i in range(32)
    ]


async def test_a_pool_says_when_one_of_its_engines_has_accepted_a_request() -> None:
    async with running_pool(hanging_token_id=9) as pool, asyncio.TaskGroup() as tasks:
        accepted = asyncio.Event()
        stream = pool.submit(make_request([9]), accepted=accepted)
        first = tasks.create_task(anext(stream))
        await accepted.wait()
        assert not first.done()
        first.cancel()


async def test_sessions_that_take_turns_find_all_their_prefixes_in_a_pool() -> None:
    """Without other requests in flight each request goes to the engine with its prefix."""
    hits, _ = await measure_hits(1, at_once=False)
    of_two, loads = await measure_hits(2, at_once=False)

    assert of_two == hits > 0
    assert min(loads) > 0


async def test_sessions_that_grow_are_shared_out() -> None:
    """Neither of two engines has much more than half the load.

    The sessions do not pause here, so some move to the engine with less waiting work, and find
    less than all their prefixes. With pauses fewer move (benchmarks.pool_sessions).
    """
    hits, loads = await measure_hits(2, at_once=True)

    assert hits > 0
    assert max(loads) <= 0.65 * sum(loads)


async def measure_hits(
    num_engines: int, *, at_once: bool, num_sessions: int = 24, num_turns: int = 5
) -> tuple[float, list[int]]:
    """Returns the share of cached prompt tokens, and each engine's number of prompt tokens."""
    spec = EngineSpec(factory="tests.engine_client.test_pool:create_caching_engine", options={})
    pool = EnginePool([EngineClient(spec, in_thread=True) for _ in range(num_engines)])
    await pool.start()
    sessions = [Session(number) for number in range(num_sessions)]
    try:
        if at_once:
            await asyncio.gather(*(each.take_turns(pool, num_turns) for each in sessions))
        else:
            for _, session in product(range(num_turns), sessions):
                await session.take_turns(pool, 1)
        stats = [member.stats() for member in pool.members]
    finally:
        await pool.close()
    given = [each.num_prefix_query_tokens for each in stats if each is not None]
    return sum(each.num_prefix_hit_tokens for each in stats if each is not None) / sum(given), given


def create_caching_engine(options: dict[str, object]) -> Engine:
    """Is a factory of an engine with a prefix cache."""
    runner = FakeRunner(
        num_blocks=16384,
        block_size=16,
        max_model_len=4096,
        max_num_seqs=32,
        max_num_batched_tokens=512,
    )
    return EngineCore(runner)


class Session:
    """A conversation that grows; a third of the sessions have a common beginning."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.turn = 0
        self.prompt = [1 + number % 3] * 640 + [number] * 320

    async def take_turns(self, pool: EnginePool, num_turns: int) -> None:
        for _ in range(num_turns):
            outputs = await read_all(pool, make_request(self.prompt, max_tokens=16))
            self.prompt += join_token_ids(outputs)
            self.prompt += [(self.number + self.turn) % 97] * (300 + self.number % 7)
            self.turn += 1


async def test_of_two_engines_one_dies_and_the_streams_of_the_other_are_whole() -> None:
    async with running_pool() as pool:
        requests = [make_request([i, i + 1] * 20, max_tokens=300) for i in range(12)]
        reading = [asyncio.create_task(read_all(pool, request)) for request in requests]
        while sum(count_open(pool)) < len(requests):
            await asyncio.sleep(0)
        process = find_engine_processes(os.getpid())[0]
        process.kill()
        answers = await asyncio.gather(*reading)
        restarted = [
            member
            for member in pool.members
            if member.num_restarts or member.state is not EngineState.READY
        ]
        state = pool.state
        later = await read_all(pool, make_request([5, 6], max_tokens=4))
        await wait_for_state(restarted[0], EngineState.READY)

    reasons = Counter(outputs[-1].finish_reason for outputs in answers)
    assert reasons == {FinishReason.LENGTH: 6, FinishReason.ERROR: 6}
    assert all(
        len(join_token_ids(outputs)) == 300 for outputs in answers if outputs[-1].error is None
    )
    assert (len(restarted), state) == (1, EngineState.READY)
    assert join_token_ids(later) == [5, 6, 5, 6]


async def test_without_any_engine_requests_are_refused_until_one_is_back() -> None:
    async with running_pool() as pool:
        # The pool may have replaced one engine before it notices the death of the other.
        while EngineState.READY in {member.state for member in pool.members}:
            for process in find_engine_processes(os.getpid()):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            await asyncio.sleep(0.01)
        state = pool.state
        with pytest.raises(EngineUnavailable), pool.admit():
            pass
        while pool.state is not EngineState.READY:
            await asyncio.sleep(0.001)
        outputs = await read_all(pool, make_request([1, 2], max_tokens=4))

    assert state is EngineState.RESTARTING
    assert join_token_ids(outputs) == [1, 2, 1, 2]


async def test_the_number_of_places_is_the_sum_over_all_engines() -> None:
    async with running_pool(max_queued_requests=3) as pool:
        most = 2 * pool.members[0].info.max_num_seqs + 3
        assert pool.num_free == pool.max_admitted == most
        with pool.admit(most):
            assert (pool.num_unfinished, pool.num_free) == (most, 0)
            with pytest.raises(Overloaded), pool.admit():
                pass


async def test_a_request_can_be_aborted_in_any_engine() -> None:
    async with running_pool() as pool:
        requests = [make_request([i], max_tokens=4000) for i in range(1, 5)]
        reading = [asyncio.create_task(read_all(pool, request)) for request in requests]
        while sum(count_open(pool)) < len(requests):
            await asyncio.sleep(0)
        for request in requests:
            pool.abort(request.request_id)
        answers = await asyncio.gather(*reading)

    assert [outputs[-1].finish_reason for outputs in answers] == [FinishReason.ABORT] * 4


async def test_an_id_is_in_use_in_the_whole_pool() -> None:
    async with running_pool() as pool:
        request = make_request([1], max_tokens=4000)
        async with aclosing(pool.submit(request)) as stream:
            await anext(stream)
            with pytest.raises(EngineFailed, match="is in use"):
                await read_all(pool, request)


async def test_draining_waits_for_the_requests_of_each_engine() -> None:
    async with running_pool() as pool:
        reading = [
            asyncio.create_task(read_all(pool, make_request([i], max_tokens=50)))
            for i in range(1, 5)
        ]
        while sum(count_open(pool)) < 4:
            await asyncio.sleep(0)
        await pool.drain(60)
        state = pool.state
        with pytest.raises(EngineUnavailable), pool.admit():
            pass
        answers = await asyncio.gather(*reading)

    assert state is EngineState.DRAINING
    assert [outputs[-1].finish_reason for outputs in answers] == [FinishReason.LENGTH] * 4


async def test_draining_waits_for_requests_that_a_living_engine_gets_later() -> None:
    async with running_pool() as pool:
        with pool.admit():
            draining = asyncio.create_task(pool.drain(60))
            await wait_for_state(pool.members[0], EngineState.DRAINING)
            find_engine_processes(os.getpid())[0].kill()
            while len([member for member in pool.members if member.takes_requests]) == 2:
                await asyncio.sleep(0.001)
            answers = [await read_all(pool, make_request([i], max_tokens=3)) for i in range(8)]
            was_draining = not draining.done()
        await draining

    assert was_draining
    assert [outputs[-1].finish_reason for outputs in answers] == [FinishReason.LENGTH] * 8


async def test_a_pool_whose_first_engine_cannot_start_says_why() -> None:
    spec = EngineSpec(factory="no.such.module:here", options={})
    pool = EnginePool([EngineClient(spec), EngineClient(spec)])
    with pytest.raises(ModelLoadError, match="could not start"):
        await pool.start()
    await pool.close()

    assert pool.state is EngineState.CLOSED
