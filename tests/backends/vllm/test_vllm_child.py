"""Runs vLLM's child process in an interpreter that has only msgspec from Ouzel's packages."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import psutil
import pytest

from ouzel.engine_client import EngineClient, EngineSpec, EngineState
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput
from tests.backends.vllm.interpreter import make_interpreter
from tests.engine.requests import make_request

FATAL = 259


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_interpreter(tmp_path_factory.mktemp("vllm"))


def spec(python: str, **arguments: object) -> EngineSpec:
    return EngineSpec(
        factory="ouzel.backends.vllm.child_engine:create_engine",
        options={"arguments": {"model": "parrot", "enable_prefix_caching": True, **arguments}},
        python=python,
        heartbeat_every_s=0.25,
        log_level="error",
    )


@asynccontextmanager
async def running(python: str) -> AsyncIterator[EngineClient]:
    client = EngineClient(spec(python))
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def read_all(client: EngineClient, request: EngineRequest) -> list[StepOutput]:
    return [output async for outputs in client.submit(request) for output in outputs]


def find_child(python: str) -> psutil.Process:
    [child] = [each for each in psutil.Process().children() if each.cmdline()[:1] == [python]]
    return child


async def wait_for_state(client: EngineClient, state: EngineState) -> None:
    while client.state is not state:
        await asyncio.sleep(0.001)


async def test_64_concurrent_streams_end(python: str) -> None:
    async with running(python) as client:
        requests = [make_request([i, i + 1], max_tokens=20 + i % 7) for i in range(64)]
        answers = await asyncio.gather(*(read_all(client, request) for request in requests))

    for i, outputs in enumerate(answers):
        token_ids = [token_id for output in outputs for token_id in output.token_ids]
        assert token_ids == ([i, i + 1] * 14)[: 20 + i % 7]
        assert outputs[-1].finish_reason is FinishReason.LENGTH


async def test_closing_a_stream_aborts_the_request(python: str) -> None:
    async with running(python) as client:
        async with aclosing(client.submit(make_request([1], max_tokens=4000))) as stream:
            async for _ in stream:
                break
        while (stats := client.stats()) is None or stats.num_running > 0:
            await asyncio.sleep(0.001)


async def test_after_a_fatal_error_open_requests_fail_and_a_new_process_starts(
    python: str,
) -> None:
    async with running(python) as client:
        before = find_child(python).pid
        outputs = await read_all(client, make_request([FATAL]))
        await wait_for_state(client, EngineState.READY)

        assert outputs[-1].finish_reason is FinishReason.ERROR
        assert "EngineCore encountered an issue" in (outputs[-1].error or "")
        assert find_child(python).pid != before
        assert len(await read_all(client, make_request([1], max_tokens=2))) > 0


async def test_a_killed_process_is_replaced(python: str) -> None:
    async with running(python) as client:
        os.kill(find_child(python).pid, signal.SIGKILL)
        await wait_for_state(client, EngineState.RESTARTING)
        await wait_for_state(client, EngineState.READY)
        outputs = await read_all(client, make_request([1], max_tokens=2))
        assert outputs[-1].finish_reason is FinishReason.LENGTH


async def test_an_error_of_vllm_about_the_model_ends_the_start(python: str) -> None:
    client = EngineClient(spec(python, model="broken"))
    with pytest.raises(ModelLoadError, match="no such architecture"):
        await client.start()
    await client.close()


async def test_an_interpreter_without_msgspec_is_named_in_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client = EngineClient(spec(make_interpreter(tmp_path, has_msgspec=False)))
    with pytest.raises(ModelLoadError, match="the engine stopped unexpectedly"):
        await client.start()
    await client.close()
    assert "has no msgspec: is it the Python of the engine?" in capfd.readouterr().err


async def test_an_interpreter_without_vllm_is_refused(python: str, tmp_path: Path) -> None:
    bare = make_interpreter(tmp_path, has_vllm=False)
    client = EngineClient(spec(bare))
    with pytest.raises(ModelLoadError, match=r"vLLM 0\.33 cannot be imported by --engine-python"):
        await client.start()
    await client.close()
