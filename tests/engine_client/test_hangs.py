"""Engines that hang are noticed and replaced, and slow engines are not."""

import asyncio
import os
import re
import signal
import time

import pytest

from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.engine.base import Engine
from ouzel.engine_client import EngineClient, EngineSpec, EngineState
from ouzel.errors import EngineUnavailable
from ouzel.types.step_output import FinishReason
from tests.engine.requests import make_request
from tests.engine_client.test_client import (
    FATAL,
    find_engine_processes,
    join_token_ids,
    open_client,
    read_all,
    wait_for_state,
)

HANGING = 668


async def test_a_process_whose_step_hangs_is_killed_and_replaced() -> None:
    async with open_client(in_thread=False, step_timeout_s=1.5, hanging_token_id=HANGING) as client:
        [engine_process] = find_engine_processes(os.getpid())
        guilty, innocent = await asyncio.gather(
            read_all(client, make_request([HANGING])),
            read_all(client, make_request([1], n=2, max_tokens=4000)),
        )

        for outputs in (guilty, innocent):
            assert outputs[-1].finish_reason is FinishReason.ERROR
            assert re.search(r"a step has taken \d+ s, the limit is 1.5 s", str(outputs[-1].error))
        assert client.state is EngineState.RESTARTING
        assert client.step_age_s > 1.5
        with pytest.raises(EngineUnavailable, match="its process is killed; it is being restarted"):
            client.admit().__enter__()
        await wait_for_state(client, EngineState.READY)
        assert not engine_process.is_running()
        assert join_token_ids(await read_all(client, make_request([7], max_tokens=2))) == [7, 7]


async def test_a_stopped_process_is_killed_and_replaced() -> None:
    async with open_client(in_thread=False, step_timeout_s=2) as client:
        [engine_process] = find_engine_processes(os.getpid())
        # an idle engine: the client notices it without a request
        engine_process.send_signal(signal.SIGSTOP)

        outputs = await read_all(client, make_request([1]))
        assert outputs[-1].finish_reason is FinishReason.ERROR
        assert "no message from it for 2 s" in str(outputs[-1].error)
        await wait_for_state(client, EngineState.READY)
        assert not engine_process.is_running()
        assert join_token_ids(await read_all(client, make_request([7], max_tokens=2))) == [7, 7]


async def test_a_blocked_event_loop_or_a_long_start_is_no_hang_of_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the child does not look into its working directory
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    spec = EngineSpec(
        factory="tests.engine_client.test_hangs:load_slowly", options={}, heartbeat_every_s=0.25
    )
    client = EngineClient(spec, step_timeout_s=2)
    await client.start()
    reader = asyncio.create_task(read_all(client, make_request([1, 2], max_tokens=500)))
    await asyncio.sleep(0.02)
    time.sleep(3)  # noqa: ASYNC251  what is tested

    assert (await reader)[-1].finish_reason is FinishReason.LENGTH
    await client.close()
    assert client.num_restarts == 0


def load_slowly(options: dict[str, object]) -> Engine:
    """Is a factory of an engine that takes three seconds to load."""
    time.sleep(3)
    return FakeEngine(FakeOptions(step_s=0.002))


async def test_an_engine_that_fails_takes_no_requests_while_it_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    spec = EngineSpec(
        factory="tests.engine_client.test_hangs:load_clinging", options={}, heartbeat_every_s=0.25
    )
    client = EngineClient(spec, step_timeout_s=10)
    await client.start()
    [engine_process] = find_engine_processes(os.getpid())

    outputs = await read_all(client, make_request([FATAL]))

    assert "the engine failed: scripted death" in str(outputs[-1].error)
    with pytest.raises(EngineUnavailable, match="it is being restarted"):
        client.admit().__enter__()
    await wait_for_state(client, EngineState.READY)
    assert not engine_process.is_running()
    find_engine_processes(os.getpid())[0].kill()  # it would not end by itself either
    await client.close()


def load_clinging(options: dict[str, object]) -> Engine:
    """Is a factory of an engine that does not close after a fatal error."""
    return ClingingEngine(FakeOptions(fatal_token_id=FATAL))


class ClingingEngine(FakeEngine):
    """An engine that does not close, like a native library after some errors."""

    def close(self) -> None:
        time.sleep(1e6)
