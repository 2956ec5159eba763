"""Loads and unloads models and adapters while other models serve. The catalogue has the served
ones.

Models are loaded one after the other, because each takes a share of the free memory. If the client
disconnects, an unload or the load of an adapter goes on; the load of a model is cancelled.
"""

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from typing import Any, Protocol, TypeVar  # Any: the type of values that are sent into coroutines

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_pulls import ModelInUse, ModelPuller, ModelPulls, PullProgress
from ouzel.api.endpoint.on_demand import OnDemand
from ouzel.api.endpoint.services import Services
from ouzel.errors import (
    EngineUnavailable,
    InvalidRequest,
    ModelLoadError,
    ModelNotFound,
    OuzelError,
)
from ouzel.generation import ServedModel
from ouzel.lifecycle.states import ModelState


class ModelLoader(Protocol):
    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        """Starts a model with the fields `name`, `model` and options. Raises InvalidRequest."""
        ...

    async def unload(self, model: ServedModel) -> None:
        """Waits for running requests, up to a limit, and frees the model's memory."""
        ...


logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class ModelChanges:
    def __init__(
        self,
        catalogue: Catalogue,
        loader: ModelLoader | None = None,
        puller: ModelPuller | None = None,
    ) -> None:
        """Without a `loader` models cannot be loaded or unloaded; without a `puller`, not pulled
        or deleted.
        """
        self.catalogue = catalogue
        self._pulls = None
        if puller is not None:
            self._pulls = ModelPulls(puller, on_pulled=self._on_pulled, on_deleted=self._on_deleted)
        self._loader = loader
        self._changing = asyncio.Lock()
        self._loading: asyncio.Task[ServedModel] | None = None
        self._loading_adapters: set[asyncio.Task[ServedModel]] = set()
        self._unloading: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._reload: Callable[[], Awaitable[None]] | None = None

    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        """Loads a model that the fields describe, and serves it. Raises InvalidRequest."""
        if self.catalogue.on_demand is not None:
            return await self._load_on_demand(self.catalogue.on_demand, fields)
        loader = self._require_loader()
        name = fields.get("name")
        # The loader refuses names of other types.
        names = [name] if isinstance(name, str) else []
        return await self.serve(names, lambda: loader.load(fields))

    async def _load_on_demand(
        self, on_demand: OnDemand, fields: Mapping[str, object]
    ) -> ServedModel:
        """Loads a model that comes and goes; `name` alone loads a known one."""
        name = fields.get("name")
        is_new = not (isinstance(name, str) and fields.keys() == {"name"})
        if is_new:
            name = (await on_demand.add(fields)).name
        assert isinstance(name, str)
        await on_demand.refresh()
        try:
            async with on_demand.residents.use(name):
                return self.catalogue.find(name).model
        except OuzelError as error:
            managed = on_demand.residents.find(name)
            failure = None if managed is None else managed.failure
            if is_new:
                await on_demand.remove(name)
            if failure is None:
                raise
            raise InvalidRequest(str(failure), param="model") from error

    async def serve(
        self, names: Sequence[str], load: Callable[[], Coroutine[Any, Any, ServedModel]]
    ) -> ServedModel:
        """Loads a model and serves it under the names. Raises InvalidRequest if one is taken."""
        async with self._changing:
            with self.catalogue.reserved(names), self.catalogue.coming(names):
                model = await self._load(load)
            try:
                self.catalogue.add(model)
            except InvalidRequest:
                await self._require_loader().unload(model)
                raise
        logger.info("model loaded: %s", model.names[0])
        return model

    async def _load(self, load: Callable[[], Coroutine[Any, Any, ServedModel]]) -> ServedModel:
        """Loads a model in a task, which `drain` can cancel.

        Raises EngineUnavailable if the server stops before the model is loaded.
        """
        if self._is_closing:
            raise EngineUnavailable("the server is shutting down", retry_after_s=1.0)
        self._loading = asyncio.create_task(load())
        try:
            return await self._loading
        except asyncio.CancelledError:
            if not self._is_closing:
                raise  # the client has left
            raise EngineUnavailable("the server is shutting down", retry_after_s=1.0) from None
        finally:
            self._loading = None

    async def drain(self, timeout_s: float) -> None:
        """Cancels a load, refuses new requests, and waits for running requests.

        Requests on models that are being unloaded are waited for too.
        """
        self._is_closing = True
        if self.catalogue.on_demand is not None:
            await self.catalogue.on_demand.residents.close()
        if self._loading is not None:
            self._loading.cancel()
        if self._pulls is not None:
            await self._pulls.close()
        leaving = [asyncio.wait(self._unloading, timeout=timeout_s)] if self._unloading else []
        await asyncio.gather(self.catalogue.shared.runs.drain(timeout_s), *leaving)

    async def unload(self, name: str) -> None:
        """Unloads a model: new requests do not find it, running requests may end.

        A model that comes and goes stays known, and the next request loads it again. Raises
        ModelNotFound.
        """
        on_demand = self.catalogue.on_demand
        if on_demand is not None and on_demand.residents.find(name) is not None:
            await on_demand.residents.unload(name)
            return
        services = self.catalogue.find(name)
        if services.model.adapter:
            await self.unload_adapter(name)
            return
        await self.end_serving(services)

    async def add(self, fields: Mapping[str, object]) -> None:
        """Serves a further model, which comes and goes or is loaded now. Raises InvalidRequest."""
        if self.catalogue.on_demand is not None:
            await self.catalogue.on_demand.add(fields)
        else:
            await self.load(fields)

    async def remove(self, name: str) -> None:
        """Unloads a model and forgets it. Raises ModelNotFound."""
        on_demand = self.catalogue.on_demand
        if on_demand is not None and on_demand.residents.find(name) is not None:
            await on_demand.remove(name)
        else:
            await self.unload(name)

    async def end_serving(self, services: Services) -> None:
        """Takes a model and its adapters off the list, and unloads it after its requests."""
        loader = self._require_loader()
        for each in self.catalogue:
            if each.model.engine is services.model.engine:
                self.catalogue.remove(each)
        await _run_to_end(loader.unload(services.model), self._unloading)

    async def load_adapter(self, name: str, path: str, base: str | None) -> ServedModel:
        """Loads an adapter and serves its model under the adapter's name.

        Raises InvalidRequest and EngineUnavailable.
        """
        model = self.catalogue.find(base).model
        if model.adapter:
            raise InvalidRequest(
                f"must be a model, given the adapter {model.adapter!r}", field="model"
            )
        if not model.engine.info.max_loras:
            raise InvalidRequest(
                f"{model.names[0]} takes no adapters: --max-loras is not set",
                param="model",
            )
        return await _run_to_end(self._load_adapter(name, path, model), self._loading_adapters)

    async def _load_adapter(self, name: str, path: str, model: ServedModel) -> ServedModel:
        with self.catalogue.reserved([name], "lora_name"):
            try:
                await model.engine.adapters.load(name, path)
            except ModelLoadError as error:
                raise InvalidRequest(str(error), param="lora_path") from error
        if all(each.model is not model for each in self.catalogue):
            raise ModelNotFound(f"{model.names[0]} has been unloaded", param="model")
        adapted = self.catalogue.add(model.with_adapter(name)).model
        logger.info("adapter loaded: %s for %s", name, model.names[0])
        return adapted

    async def unload_adapter(self, name: str) -> None:
        """Unloads an adapter: new requests do not find it, running requests may end.

        Raises ModelNotFound.
        """
        services = next((each for each in self.catalogue if each.model.adapter == name), None)
        if services is None or not name:
            raise ModelNotFound(f"there is no adapter {name[:100]!r}", param="lora_name")
        self.catalogue.remove(services)
        await asyncio.shield(services.model.engine.adapters.unload(name))
        logger.info("adapter unloaded: %s", name)

    def pull(self, name: str) -> AsyncGenerator[PullProgress, None]:
        """Downloads a model, or follows its download; a model on this disk is brought up to date.

        The download stops when the last follower closes its generator. Raises the errors of
        `ModelPuller.pull`.
        """
        return self._require_pulls().pull(name)

    async def is_present(self, name: str) -> bool:
        """Tells whether the model is served, or its files are on this disk."""
        if name in self.catalogue.names:
            return True
        return self._pulls is not None and await self._pulls.is_present(name)

    async def delete(self, name: str) -> int:
        """Deletes a model's files; returns the number of freed bytes.

        Raises ModelInUse for a model that is in memory, or on its way; InvalidRequest for a model
        of `--models-dir`; and the errors of `ModelPuller.delete`.
        """
        pulls, on_demand = self._require_pulls(), self.catalogue.on_demand
        if on_demand is not None and on_demand.is_in_directory(name):
            raise InvalidRequest(
                f"must be a model that was pulled; {name[:100]!r} is in --models-dir, whose files "
                "the server does not delete",
                field="model",
            )
        managed = None if on_demand is None else on_demand.residents.find(name)
        is_away = managed is not None and managed.state in (ModelState.ON_DISK, ModelState.FAILED)
        if name in self.catalogue.names and not is_away:
            raise ModelInUse(
                f"the model {name[:100]!r} is loaded; unload it first: POST /v1/models/unload",
                param="model",
            )
        if not is_away:
            self.catalogue.check_loading(name)
        if on_demand is None or managed is None:
            with self.catalogue.reserved([name], "model"):
                return await pulls.delete(name)
        with on_demand.residents.blocked(managed):  # a request must not load the model meanwhile
            num_bytes = await pulls.delete(on_demand.find_source(managed))
        await on_demand.remove(name)
        return num_bytes

    async def _on_pulled(self, name: str) -> None:
        """Lets requests load a model that was pulled, before its clients learn of the success."""
        logger.info("model pulled: %s", name)
        on_demand = self.catalogue.on_demand
        if on_demand is None or on_demand.residents.find(name) is not None:
            return
        try:
            await on_demand.add_pulled(name)
        except OuzelError as error:
            logger.warning("the pulled model %s cannot be served: %s", name, error)

    async def _on_deleted(self, name: str) -> None:
        """Forgets a model whose files have been deleted."""
        logger.info("model deleted: %s", name)
        if self.catalogue.on_demand is not None:
            await self.catalogue.on_demand.remove(name)

    def set_reload(self, reload: Callable[[], Awaitable[None]]) -> None:
        """Sets the function that reads the list of models again when a client asks for it."""
        self._reload = reload

    async def reload(self) -> None:
        """Reads the list of models again. Raises InvalidRequest if no file lists the models."""
        if self._reload is None:
            raise InvalidRequest(
                "this server has read its models from no file: set --config or --config_path"
            )
        await self._reload()

    def _require_pulls(self) -> ModelPulls:
        if self._pulls is None:
            raise InvalidRequest("this server cannot pull or delete models")
        return self._pulls

    def _require_loader(self) -> ModelLoader:
        if self._loader is None:
            raise InvalidRequest("the models of this server cannot be changed")
        return self._loader


async def _run_to_end(
    change: Coroutine[Any, Any, Result], under_way: set[asyncio.Task[Result]]
) -> Result:
    """Runs a change to its end, also if the client disconnects. Until then it is in `under_way`."""
    task = asyncio.create_task(change)
    under_way.add(task)
    task.add_done_callback(under_way.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_log_failure)  # no one else reads the error
        raise


def _log_failure(task: asyncio.Task[Any]) -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, OuzelError):
        logger.warning("a change of the models failed after its client had left: %s", error)
    elif error is not None:
        logger.error("a change of the models failed after its client had left", exc_info=error)
