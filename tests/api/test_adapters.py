"""Adapters as models of a server, over an engine whose adapters are files of any content."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.backends.fake_runner import FakeRunner
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.engine.core import EngineCore
from ouzel.engine_client import EngineClient
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.serve.engine_factories import load_adapters
from tests.api.server_setup import ServerSetup


def create_adaptable(options: dict[str, object]) -> EngineCore:
    engine = EngineCore(FakeRunner(vocab_size=260, num_blocks=64, max_model_len=256, max_loras=2))
    load_adapters(engine, dict.fromkeys(str(options.get("at_start", "")).split(), __file__))
    return engine


@pytest.fixture
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ServedModel]:
    options = {"at_start": getattr(request, "param", "")}
    setup = ServerSetup(
        options, engine_factory="tests.api.test_adapters:create_adaptable", names=("model", "alias")
    )
    engine = EngineClient(setup.engine_spec(), in_thread=True)
    await engine.start()
    yield setup.build_model(engine)
    await engine.close()


def changes_to(model: ServedModel) -> ModelChanges:
    return ModelChanges(Catalogue([model], LimitsConfig(), ServerConfig(), None))


async def test_an_adapter_is_served_although_its_requester_has_left(
    model: ServedModel, tmp_path: Path
) -> None:
    changes = changes_to(model)
    asking = asyncio.create_task(changes.load_adapter("a", __file__, None))
    await asyncio.sleep(0)
    asking.cancel()
    with suppress(InvalidRequest):  # adapters are read one after the other
        await changes.load_adapter("b", str(tmp_path / "missing"), None)

    assert changes.catalogue.names == ["model", "alias", "a"]
    await changes.unload_adapter("a")
    assert changes.catalogue.names == ["model", "alias"]


async def test_a_load_that_fails_when_its_client_has_gone_is_one_line_of_the_log(
    model: ServedModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes = changes_to(model)
    asking = asyncio.create_task(changes.load_adapter("a", str(tmp_path / "missing"), None))
    await asyncio.sleep(0)
    asking.cancel()
    await changes.load_adapter("b", __file__, None)  # adapters are read one after the other
    del asking
    gc.collect()  # a task with an unread error logs the error when it is collected

    [line] = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.getMessage().startswith("a change of the models failed after its client had left: ")
    assert line.exc_info is None and changes.catalogue.names == ["model", "alias", "b"]


async def test_a_name_is_taken_while_its_adapter_is_read(model: ServedModel) -> None:
    changes = changes_to(model)
    loads = (changes.load_adapter("a", __file__, None) for _ in range(2))
    first, second = await asyncio.gather(*loads, return_exceptions=True)

    assert isinstance(first, ServedModel)
    assert str(second) == "lora_name must differ from the names of all served models, given 'a'"


@pytest.mark.parametrize("model", ["one alias"], indirect=True)
async def test_no_adapter_has_a_name_of_its_model(model: ServedModel) -> None:
    with pytest.raises(
        InvalidRequest, match="an adapter must have another name than its model, given 'alias'"
    ):
        changes_to(model)
