"""Tests changes of adapters with a real engine, which may die and start again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine_client.adapter_changes import AdapterChanges
from ouzel.errors import EngineUnavailable, ModelLoadError
from ouzel.serve.engine_factories import load_adapters
from ouzel.types.engine_messages import EngineCommand, LoadAdapter, UnloadAdapter
from tests.engine.requests import make_request, run_alone, with_adapter

PROMPT = list(range(1, 14))


class Process:
    """An engine that may die, and that starts again with the adapters of its specification."""

    def __init__(self, files: Path, names: Iterable[str]) -> None:
        self._files = files
        self._names = tuple(names)
        self._commands: list[EngineCommand] = []
        self.engine = self._start_engine()
        self.changes = AdapterChanges(
            self._commands.append, is_running=lambda: not self.changes.is_telling
        )

    def _start_engine(self) -> EngineCore:
        engine = EngineCore(FakeRunner(max_loras=2, num_blocks=8192, max_model_len=20_000))
        load_adapters(engine, {name: str(self._files / name) for name in self._names})
        return engine

    def work(self) -> None:
        """Runs the commands that were sent, makes a step and passes on the events."""
        commands = self._commands[:]
        self._commands.clear()
        for command in commands:
            if isinstance(command, LoadAdapter):
                self.engine.adapters.load(command.name, command.path)
            elif isinstance(command, UnloadAdapter):
                self.engine.adapters.unload(command.name)
        if self.engine.has_unfinished():
            self.engine.step()
        for event in self.engine.adapters.take_events():
            self.changes.answer(event)

    def restart(self) -> None:
        self._commands.clear()
        self.changes.lose("it died")
        self.engine = self._start_engine()
        self.changes.tell_again(self.engine.info.adapters)

    def catch_up(self) -> None:
        while self.changes.is_telling:
            self.work()

    async def load(self, name: str, file: str) -> None:
        await self.choose_pause(self.changes.load(name, str(self._files / file)))

    async def unload(self, name: str) -> None:
        await self.choose_pause(self.changes.unload(name))

    async def choose_pause(self, change: Awaitable[None]) -> None:
        task = asyncio.ensure_future(change)
        while not task.done():
            await asyncio.sleep(0)
            self.work()
        await task

    def names(self) -> list[str]:
        return list(self.engine.info.adapters)

    def tokens(self, name: str) -> list[int]:
        return run_alone(self.engine, with_adapter(make_request(PROMPT), name))[0].token_ids


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Process]:
    for name in "abc":
        (tmp_path / name).write_text(name)
    return lambda *names: Process(tmp_path, names)


async def test_an_adapter_that_replaced_one_of_the_start_is_there_again(
    start: Callable[..., Process],
) -> None:
    """Both adapter slots are in use all the time."""
    process = start("a", "b")
    of_a = process.tokens("a")
    await process.unload("a")
    await process.load("a", "c")
    of_c = process.tokens("a")
    assert of_c != of_a

    process.restart()
    process.catch_up()

    assert process.names() == ["a", "b"]
    assert process.tokens("a") == of_c


async def test_an_adapter_unloaded_during_a_restart_is_gone(start: Callable[..., Process]) -> None:
    process = start("a")
    await process.load("b", "b")

    process.restart()
    with pytest.raises(EngineUnavailable):
        await process.changes.load("c", "c")
    await process.unload("b")

    assert process.names() == ["a"]
    await process.load("b", "c")
    assert process.names() == ["a", "b"]


async def test_a_name_is_given_again_while_requests_of_its_predecessor_run(
    start: Callable[..., Process],
) -> None:
    process = start("a")
    of_a = process.tokens("a")
    request = with_adapter(make_request(PROMPT, max_tokens=10_000), "a")
    process.engine.add(request)
    unloading = asyncio.create_task(process.changes.unload("a"))
    await asyncio.sleep(0)
    await process.load("a", "b")

    assert not unloading.done()
    process.engine.abort(request.request_id)
    await process.choose_pause(unloading)
    assert process.tokens("a") != of_a


async def test_a_change_fails_with_the_engine_that_should_make_it(
    start: Callable[..., Process],
) -> None:
    process = start()
    loading = asyncio.create_task(process.changes.load("a", "a"))
    await asyncio.sleep(0)
    process.restart()
    with pytest.raises(EngineUnavailable, match="it died"):
        await loading
    with pytest.raises(ModelLoadError, match="No such file"):
        await process.load("a", "missing")
    assert process.names() == []
