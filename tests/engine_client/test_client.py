"""Tests the client with a fake engine, in a thread and in a child process."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import msgspec
import psutil
import pytest

from ouzel.backends.fake import FakeEngine
from ouzel.engine_client import EngineClient, EngineSpec, EngineState
from ouzel.engine_client.collector import Collector
from ouzel.engine_client.open_requests import OpenRequests
from ouzel.errors import EngineUnavailable, ModelLoadError, Overloaded
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput
from tests.engine.requests import make_request

FATAL = 666
FAILING = 667


@asynccontextmanager
async def open_client(
    *,
    in_thread: bool,
    max_queued_requests: int = 256,
    step_timeout_s: float = 300,
    **options: object,
) -> AsyncIterator[EngineClient]:
    spec = EngineSpec(
        factory="ouzel.backends.fake:create_engine",
        options={"step_s": 0.002, "fatal_token_id": FATAL, "failing_token_id": FAILING, **options},
        heartbeat_every_s=0.25,
    )
    client = EngineClient(
        spec,
        in_thread=in_thread,
        max_queued_requests=max_queued_requests,
        step_timeout_s=step_timeout_s,
    )
    await client.start()
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture(params=[True, False], ids=["thread", "process"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[EngineClient]:
    async with open_client(in_thread=request.param) as client:
        yield client


async def read_all(client: EngineClient, request: EngineRequest) -> list[StepOutput]:
    return [output async for outputs in client.submit(request) for output in outputs]


def join_token_ids(outputs: list[StepOutput], index: int = 0) -> list[int]:
    return [
        token_id for output in outputs if output.index == index for token_id in output.token_ids
    ]


async def wait_until_idle(client: EngineClient) -> None:
    while (stats := client.stats()) is None or stats.num_running > 0:
        await asyncio.sleep(0.001)


async def wait_for_state(client: EngineClient, state: EngineState) -> None:
    while client.state is not state:
        await asyncio.sleep(0.001)


async def test_outputs_arrive_in_order_and_end_once(client: EngineClient) -> None:
    outputs = await read_all(client, make_request([1, 2, 3], n=2, max_tokens=20))

    for index in (0, 1):
        assert join_token_ids(outputs, index) == ([1, 2, 3] * 7)[:20]
        assert (
            sum(output.finish_reason is not None for output in outputs if output.index == index)
            == 1
        )


async def test_a_request_is_accepted_before_the_engine_has_made_a_step() -> None:
    async with (
        open_client(in_thread=False, hanging_token_id=9) as client,
        asyncio.TaskGroup() as tasks,
    ):
        accepted = asyncio.Event()
        stream = client.submit(make_request([9]), accepted=accepted)
        first = tasks.create_task(anext(stream))
        await accepted.wait()
        assert not first.done()
        first.cancel()


async def test_a_request_with_a_grammar_is_accepted_with_an_output_that_is_no_refusal() -> None:
    request = make_request([1], grammar='start: "a"')
    confirmation = StepOutput(
        request_id=request.request_id, index=0, token_ids=[], logprobs=[], num_cached_tokens=0
    )
    for reason, is_accepted in [
        (None, True),
        (FinishReason.REFUSED, False),
        (FinishReason.OVERLOADED, False),
    ]:
        accepted = asyncio.Event()
        collector = OpenRequests().open(request, FakeEngine().info, accepted)
        assert not accepted.is_set()
        collector.put(msgspec.structs.replace(confirmation, finish_reason=reason))
        assert accepted.is_set() == is_accepted


async def test_many_requests_at_once(client: EngineClient) -> None:
    requests = [make_request([i, i + 1], max_tokens=1 + i % 17) for i in range(100)]

    answers = await asyncio.gather(*(read_all(client, request) for request in requests))

    assert [join_token_ids(outputs) for outputs in answers] == [
        ([i, i + 1] * 9)[: 1 + i % 17] for i in range(100)
    ]


async def test_leaving_a_stream_aborts_the_request(client: EngineClient) -> None:
    async with aclosing(client.submit(make_request([1], max_tokens=4000))) as stream:
        async for _ in stream:
            break

    await wait_until_idle(client)


async def test_cancelling_the_reader_aborts_the_request(client: EngineClient) -> None:
    reader = asyncio.create_task(read_all(client, make_request([1], max_tokens=4000)))
    await asyncio.sleep(0.02)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader

    await wait_until_idle(client)


async def test_a_single_choice_can_be_aborted(client: EngineClient) -> None:
    request = make_request([1], n=2, max_tokens=30)
    reasons = {}
    async for outputs in client.submit(request):
        client.abort(request.request_id, 1)
        reasons.update({output.index: output.finish_reason for output in outputs})

    assert reasons == {0: FinishReason.LENGTH, 1: FinishReason.ABORT}


async def test_a_failed_request_leaves_the_others_alone(client: EngineClient) -> None:
    good, bad = await asyncio.gather(
        read_all(client, make_request([1, 2], max_tokens=10)),
        read_all(client, make_request([FAILING], max_tokens=10)),
    )

    assert join_token_ids(good) == [1, 2] * 5
    assert (bad[-1].finish_reason, bad[-1].error) == (FinishReason.ERROR, "scripted failure")


async def test_a_request_that_cannot_be_sent_leaves_the_others_alone() -> None:
    async with open_client(in_thread=False) as client:
        good, bad = await asyncio.gather(
            read_all(client, make_request([1, 2], max_tokens=10)),
            read_all(client, make_request([1], priority=2**70)),
        )

    assert join_token_ids(good) == [1, 2] * 5
    assert (bad[-1].finish_reason, bad[-1].error) == (
        FinishReason.ERROR,
        "the request cannot be sent to the engine",
    )


async def test_a_dead_engine_ends_its_requests_and_comes_back(client: EngineClient) -> None:
    innocent = asyncio.create_task(read_all(client, make_request([1], n=2, max_tokens=4000)))
    await asyncio.sleep(0.02)
    guilty = await read_all(client, make_request([FATAL]))

    outputs = await innocent
    assert {output.index for output in outputs if output.finish_reason is FinishReason.ERROR} == {
        0,
        1,
    }
    assert "scripted death" in str(guilty[-1].error)
    await wait_for_state(client, EngineState.READY)
    assert join_token_ids(await read_all(client, make_request([7], max_tokens=2))) == [7, 7]
    assert client.num_restarts == 1


async def test_a_killed_process_is_noticed_and_replaced() -> None:
    async with open_client(in_thread=False) as client:
        [engine_process] = find_engine_processes(os.getpid())
        reader = asyncio.create_task(read_all(client, make_request([1], max_tokens=4000)))
        await asyncio.sleep(0.02)
        engine_process.send_signal(signal.SIGKILL)

        outputs = await reader
        assert outputs[-1].finish_reason is FinishReason.ERROR
        assert "the engine stopped unexpectedly (SIGKILL) while computing" in str(outputs[-1].error)
        with pytest.raises(EngineUnavailable):
            client.admit().__enter__()
        await wait_for_state(client, EngineState.READY)
        assert join_token_ids(await read_all(client, make_request([7], max_tokens=2))) == [7, 7]
    assert find_engine_processes(os.getpid()) == []


def test_the_engine_does_not_outlive_its_parent() -> None:
    program = (
        "import asyncio, os\n"
        "from ouzel.engine_client import EngineClient, EngineSpec\n"
        "async def main():\n"
        "    spec = EngineSpec(factory='ouzel.backends.fake:create_engine', options={})\n"
        "    client = EngineClient(spec)\n"
        "    await client.start()\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        (sys.executable, "-c", program), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        [engine_process] = find_engine_processes(parent.pid)
        parent.kill()

        while engine_process.is_running() and engine_process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def find_engine_processes(parent_pid: int) -> list[psutil.Process]:
    """Returns the engine processes that a process has started itself.

    Servers of other tests have engines of their own.
    """
    return [child for child in psutil.Process(parent_pid).children() if _is_engine(child)]


def _is_engine(process: psutil.Process) -> bool:
    try:
        return any("run_child" in part for part in process.cmdline())
    except psutil.NoSuchProcess:  # it has ended, and its parent may not have noticed yet
        return False


async def test_admission_is_limited() -> None:
    async with open_client(in_thread=True, max_queued_requests=1, max_num_seqs=1) as client:
        with client.admit(), client.admit():
            with pytest.raises(Overloaded, match="2 requests run or wait, the limit is 2"):
                client.admit().__enter__()
            assert client.num_unfinished == 2
        with pytest.raises(
            Overloaded, match="full: 0 requests run or wait, the limit is 2, given 3 more"
        ):
            client.admit(3).__enter__()
        with client.admit(2):
            assert client.num_unfinished == 2
        assert client.num_unfinished == 0


async def test_an_engine_that_cannot_start_says_why() -> None:
    with pytest.raises(ModelLoadError, match="step_s"):
        async with open_client(in_thread=False, step_s="soon"):
            pass


async def test_a_specification_that_cannot_be_sent_says_why() -> None:
    client = EngineClient(
        EngineSpec(factory="ouzel.backends.fake:create_engine", options={"path": "\udcff"})
    )

    with pytest.raises(ModelLoadError, match="surrogates"):
        await client.start()
    await client.close()


async def test_an_engine_that_dies_while_draining_is_not_started_again() -> None:
    async with open_client(in_thread=False) as client:
        reader = asyncio.create_task(read_all(client, make_request([1], max_tokens=4000)))
        await asyncio.sleep(0.02)
        draining = asyncio.create_task(client.drain(60))
        [engine_process] = find_engine_processes(os.getpid())
        engine_process.send_signal(signal.SIGKILL)

        await draining
        assert (await reader)[-1].finish_reason is FinishReason.ERROR
        assert find_engine_processes(os.getpid()) == []
        with pytest.raises(EngineUnavailable):
            await read_all(client, make_request([1]))


async def test_drain_waits_for_running_requests_and_admits_no_more(client: EngineClient) -> None:
    reader = asyncio.create_task(read_all(client, make_request([1], max_tokens=30)))
    await asyncio.sleep(0)
    draining = asyncio.create_task(client.drain(60))
    await asyncio.sleep(0)
    with pytest.raises(EngineUnavailable):
        client.admit().__enter__()

    await draining
    assert len(join_token_ids(await reader)) == 30


async def test_drain_waits_for_admitted_requests_that_the_engine_gets_later(
    client: EngineClient,
) -> None:
    with client.admit():
        draining = asyncio.create_task(client.drain(60, reason="the model is being unloaded"))
        await asyncio.sleep(0.02)
        was_draining = not draining.done()
        outputs = await read_all(client, make_request([1], max_tokens=3))
    await draining

    assert (was_draining, len(join_token_ids(outputs))) == (True, 3)
    assert client.reason == "the model is being unloaded"


async def test_drain_aborts_requests_that_take_too_long(client: EngineClient) -> None:
    reader = asyncio.create_task(read_all(client, make_request([1], max_tokens=4000)))
    await asyncio.sleep(0.02)
    await client.drain(0.01)

    assert (await reader)[-1].finish_reason is FinishReason.ABORT


async def test_a_slow_reader_gets_merged_outputs() -> None:
    request = make_request([1], n=1)
    collector = Collector(request)
    for token_id in (5, 6, 7):
        collector.put(
            StepOutput(
                request_id="a", index=0, token_ids=[token_id], logprobs=[], num_cached_tokens=3
            )
        )

    [output] = await collector.read()

    assert (output.token_ids, output.num_cached_tokens) == ([5, 6, 7], 3)
