"""Starts and stops the engines of models, at the start of a server and while it runs."""

import asyncio
import gc
import logging
from collections.abc import Mapping, Sequence
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING

from ouzel.checkpoint.declared_task import is_encoder
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.engine.grammars.native_memory import give_back_memory
from ouzel.engine_client import Engines
from ouzel.errors import InvalidRequest, ModelLoadError
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import ModelSettings, read_model_entry
from ouzel.options.options import Options
from ouzel.serve.engine_specs import make_engines
from ouzel.serve.open_models import CheckedModel, open_model

if TYPE_CHECKING:
    from ouzel.generation import ServedModel

logger = logging.getLogger(__name__)

_FREE_AFTER_S = 0.5


class ModelHost:
    """Starts and stops the engines of models with the server's options.

    Implements `ModelLoader`.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._hosted: list[Engines] = []
        self._directories: dict[Engines, list[Path]] = {}
        self._num_caches_at_start = 1
        self._with_cache: set[Engines] = set()

    def expect(self, models: Sequence[CheckedModel]) -> None:
        """Tells the host the models of the start, which divide the free memory for their caches."""
        self._num_caches_at_start = sum(map(has_kv_cache, models))

    def make_engines(self, model: CheckedModel, share_bytes: int | None = None) -> Engines:
        """Returns the engines of a model, not started yet; they are closed with this host.

        `share_bytes` is the memory for weights and caches of the model. None: decoders get
        equal shares of the free memory.
        """
        options = self._options.of(model.settings)
        engines = make_engines(
            options,
            model.local,
            memory_share=self.divide_memory() if share_bytes is None else 1.0,
            limit_bytes=share_bytes,
        )
        self._hosted.append(engines)
        if has_kv_cache(model):
            self._with_cache.add(engines)
        draft = [] if model.local.draft is None else [model.local.draft]
        self._directories[engines] = [model.local.directory, *draft]
        return engines

    def divide_memory(self) -> float:
        """Returns the share (0 to 1) of the next model with a cache in the free memory."""
        return 1 / max(self._num_caches_at_start, len(self._with_cache) + 1)

    def list_directories(self) -> list[Path]:
        """Returns the directories of the models whose engines run, and of their draft models."""
        return [path for paths in self._directories.values() for path in paths]

    def take_options(self, options: Options) -> None:
        """Replaces the options that models loaded from now on share."""
        self._options = options

    async def serve(self, model: CheckedModel, share_bytes: int | None = None) -> "ServedModel":
        """Starts the engines of a model and reads its small files meanwhile.

        `share_bytes` is as for `make_engines`. Raises ModelLoadError.
        """
        # The import is late, so that the engine's process starts sooner.
        from ouzel.serve.served_model import load_served_model  # noqa: PLC0415

        engines = self.make_engines(model, share_bytes)
        # The empty context: the engine outlives the request that loads it.
        starting = asyncio.create_task(engines.start(), context=Context())
        try:
            options = self._options.of(model.settings)
            return await load_served_model(options, model.local, engines, starting)
        except BaseException:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self._close(engines, reason="the model could not be loaded")
            raise

    async def load(self, fields: Mapping[str, object]) -> "ServedModel":
        """Opens and serves the model of an entry of `models`. Raises InvalidRequest."""
        model = await self.check(fields)
        try:
            return await self.serve(model)
        except (InvalidOption, ModelLoadError) as error:
            raise InvalidRequest(str(error), param="model") from error

    def read_entry(self, fields: Mapping[str, object]) -> ModelSettings:
        """Reads an entry of `models`. Raises InvalidOption."""
        return read_model_entry(fields, self._options.values, "the model")

    async def check(self, fields: Mapping[str, object]) -> CheckedModel:
        """Finds or downloads the model of an entry of `models`, and checks it.

        Raises InvalidRequest.
        """
        try:
            settings = self.read_entry(fields)
            return await asyncio.to_thread(open_model, settings)
        except (InvalidOption, ModelLoadError) as error:
            raise InvalidRequest(str(error), param="model") from error

    async def unload(self, model: "ServedModel") -> None:
        """Waits for running requests, as at the server's end, and frees the model's memory."""
        await model.engine.drain(
            self._options.limits.drain_timeout_s, reason="the model is being unloaded"
        )
        await self._close(model.engine, reason="the model is unloaded")
        await asyncio.to_thread(model.renderer.close)
        logger.info("model %s is unloaded", model.names[0])
        # later, because callers still hold the model now
        loop = asyncio.get_running_loop()
        loop.call_later(_FREE_AFTER_S, loop.run_in_executor, None, _free_memory)

    async def close(self) -> None:
        await asyncio.gather(*(engines.close() for engines in self._hosted))

    async def _close(self, engines: Engines, *, reason: str) -> None:
        self._hosted.remove(engines)
        self._with_cache.discard(engines)
        del self._directories[engines]
        await engines.close(reason=reason)


def has_kv_cache(model: CheckedModel) -> bool:
    """Tells whether the model is a decoder, whose engine takes memory for a cache."""
    try:
        config = read_hf_config(model.local.directory)
    except ModelLoadError:  # the engine reports it
        return True
    return not is_encoder(config)


def _free_memory() -> None:
    """Frees the memory of objects that are no longer used, and returns it to the system."""
    gc.unfreeze()  # objects of the start are exempt from collection, a model's among them
    gc.collect()
    gc.freeze()
    give_back_memory()
