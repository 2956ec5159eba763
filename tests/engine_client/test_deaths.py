"""An engine whose process a signal ends tells the signal and the stage in which it came."""

import os
import signal
from contextlib import nullcontext

import msgspec
import pytest

from ouzel.engine.base import Engine
from ouzel.engine_client import EngineClient, EngineSpec, EngineState
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage
from tests.engine_client.test_client import find_engine_processes, open_client, wait_for_state


async def test_an_engine_that_dies_while_idle_says_so() -> None:
    async with open_client(in_thread=False) as client:
        [engine_process] = find_engine_processes(os.getpid())
        engine_process.send_signal(signal.SIGKILL)
        await wait_for_state(client, EngineState.RESTARTING)
        assert client.reason.startswith(
            "the engine stopped unexpectedly (SIGKILL) while waiting for requests"
        )
        await wait_for_state(client, EngineState.READY)


def die_while_loading(options: dict[str, object]) -> Engine:
    """Is a factory of an engine that dies in its second stage, or before its first."""
    if options["stages"]:
        with stage("reading the weights"):
            pass
    with stage("compiling the model in bf16 for 1 thread") if options["stages"] else nullcontext():
        os.kill(os.getpid(), msgspec.convert(options["signal"], int))
    raise AssertionError("unreachable")


@pytest.mark.parametrize(
    ("has_stages", "said"),
    [(True, "while compiling the model in bf16 for 1 thread"), (False, "while starting")],
    ids=["in a stage", "before any"],
)
@pytest.mark.parametrize("number", [signal.SIGFPE, signal.SIGKILL])
async def test_an_engine_that_dies_while_it_loads_says_where_and_is_not_started_again(
    number: signal.Signals,
    has_stages: bool,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # the child does not look into its working directory
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    options: dict[str, object] = {"signal": number, "stages": has_stages}
    factory = "tests.engine_client.test_deaths:die_while_loading"
    client = EngineClient(EngineSpec(factory=factory, options=options, label="of demo"))

    with pytest.raises(ModelLoadError) as failed:
        await client.start()

    assert str(failed.value) == f"the engine of demo stopped unexpectedly ({number.name}) {said}"
    assert client.state is EngineState.FAILED
    shows_stacks = (
        "SIGFPE ended the engine's process" in caplog.text and "in die_while_loading" in caplog.text
    )
    assert shows_stacks is (number is signal.SIGFPE)  # SIGKILL leaves no time
    await client.close()
