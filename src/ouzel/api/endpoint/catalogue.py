"""The catalogue knows the models that are served now, by the names that clients may send.

Models come and go while requests run. Whoever has found one keeps it until its request is over; what is asked later
does not find it any more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ouzel.api.endpoint.model_loader import ModelLoader
from ouzel.api.endpoint.services import Services, SharedServices
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.errors import EngineUnavailable, InvalidRequest, ModelLoadError, ModelNotFound
from ouzel.generation import EngineState, ServedModel
from ouzel.store.base import Store

logger = logging.getLogger(__name__)


class Catalogue:
    """The first model is that of requests which name none."""

    def __init__(
        self,
        models: Iterable[ServedModel],
        limits: LimitsConfig,
        config: ServerConfig,
        store: Store | None,
        loader: ModelLoader | None = None,
    ) -> None:
        """Without a `loader` these models stay."""
        self._loader = loader
        self._changing = asyncio.Lock()  # the memory that a model finds free is not another's too
        self._loading_adapters: dict[str, asyncio.Task[ServedModel]] = {}  # by their names, which are taken
        self._served: list[Services] = []
        self._places: dict[str, int] = {}  # by the first name of a model
        self._coming: list[str] = []  # names of models that are being loaded
        self._loading: asyncio.Task[ServedModel] | None = None
        self._unloading: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._on_removal: list[Callable[[Services], None]] = []
        self._reload: Callable[[], Awaitable[None]] | None = None
        self.shared = SharedServices.of(limits, config, store, lambda: [each.preparer for each in self._served])
        for model in models:
            self.add(model)

    def __iter__(self) -> Iterator[Services]:
        return iter(tuple(self._served))

    @property
    def only(self) -> Services | None:
        """Returns the one model, where there is one and no other is being loaded: then a name need not be looked at."""
        return self._served[0] if len(self._served) == 1 and not self._coming else None

    @property
    def bases(self) -> list[Services]:
        """Returns those that have engines of their own: adapters have not."""
        return [each for each in self._served if not each.model.adapter]

    @property
    def first(self) -> Services:
        """Raises ModelNotFound where none is served, and EngineUnavailable where the first is being loaded."""
        place = self._place(self._served[0]) if self._served else len(self._places) + 1
        for name in self._coming:
            if self._places.get(name, len(self._places)) < place:
                self.check_coming(name)
        if not self._served:
            raise ModelNotFound("this server has no model now", param="model")
        return self._served[0]

    @property
    def names(self) -> list[str]:
        return [name for each in self._served for name in each.model.names]

    @property
    def state(self) -> EngineState:
        """Returns READY where any model takes requests, else the state of the first."""
        states = [each.model.engine.state for each in self._served]
        if not states:
            return EngineState.CLOSED
        return EngineState.READY if EngineState.READY in states else states[0]

    @property
    def reason(self) -> str:
        """Says of the state to people why it is."""
        state = self.state
        reasons = [each.model.engine.reason for each in self._served if each.model.engine.state is state]
        return reasons[0] if reasons else "this server has no model now"

    def find(self, name: str | None) -> Services:
        """Returns the model with that name, and the first where none is named.

        Raises ModelNotFound, and EngineUnavailable where it is being loaded.
        """
        if not name:
            return self.first
        for each in self._served:
            if name in each.model.names:
                return each
        self.check_coming(name)
        raise ModelNotFound(
            f"the model {name[:100]!r} does not exist; this server has: {', '.join(self.names)}", param="model"
        )

    @contextmanager
    def coming(self, names: Sequence[str]) -> Iterator[None]:
        """Has requests for these models try again later, rather than do without them, while the block runs."""
        self._coming += names
        try:
            yield
        finally:
            for name in names:
                self._coming.remove(name)

    def check_coming(self, *names: str) -> None:
        """Raises EngineUnavailable where a model that is not served now has one of the names."""
        for name in names:
            if name in self._coming:
                raise EngineUnavailable(f"the model {name[:100]!r} is being loaded", retry_after_s=2.0)

    def add(self, model: ServedModel) -> Services:
        """Serves a model from now on. Raises InvalidRequest where one of its names is taken."""
        adapted = [] if model.adapter else [model.with_adapter(name) for name in model.engine.info.adapters]
        for each in adapted:
            if each.adapter in model.names:
                raise InvalidRequest(f"an adapter must have another name than its model, given {each.adapter!r}")
        self._check_names(*model.names, *(each.adapter for each in adapted))
        services = Services.of(model, self.shared)
        self._served += [services, *(Services.of(each, self.shared) for each in adapted)]
        self._served.sort(key=self._place)
        return services

    def arrange(self, names: Iterable[str]) -> None:
        """Has models stand in this order from now on, whenever they come; others stand behind them."""
        self._places = {name: place for place, name in enumerate(names)}
        self._served.sort(key=self._place)

    def _place(self, services: Services) -> int:
        """Returns that of the model; adapters have the one of theirs."""
        model = services.model
        return self._places.get(model.parent or model.names[0], len(self._places))

    def remove(self, services: Services) -> None:
        """Serves a model no more; its engine is the caller's matter."""
        self._served.remove(services)
        for forget in self._on_removal:
            forget(services)

    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        """Serves one more model, which these fields describe. Raises InvalidRequest."""
        loader = self._needed_loader()
        async with self._changing:
            name = fields.get("name")
            self._check_names(name)
            with self.coming([name] if isinstance(name, str) else []):
                model = await self._load(loader, fields)
            try:
                self.add(model)
            except InvalidRequest:
                await loader.unload(model)
                raise
        logger.info("model %s is served now", model.names[0])
        return model

    async def _load(self, loader: ModelLoader, fields: Mapping[str, object]) -> ServedModel:
        """Raises EngineUnavailable when the server stops meanwhile."""
        if self._is_closing:
            raise EngineUnavailable("the server is shutting down", retry_after_s=1.0)
        self._loading = asyncio.create_task(loader.load(fields))
        try:
            return await self._loading
        except asyncio.CancelledError:
            if not self._is_closing:
                raise  # whoever asks for it has gone
            raise EngineUnavailable("the server is shutting down", retry_after_s=1.0) from None
        finally:
            self._loading = None

    async def drain(self, timeout_s: float) -> None:
        """Ends a load, takes no more requests, and waits for those that run, also on models that are being unloaded."""
        self._is_closing = True
        if self._loading is not None:
            self._loading.cancel()
        leaving = [asyncio.wait(self._unloading, timeout=timeout_s)] if self._unloading else []
        await asyncio.gather(self.shared.runs.drain(timeout_s), *leaving)

    async def unload(self, name: str) -> None:
        """Requests do not find it any more, and those that run may end. Raises ModelNotFound."""
        loader, services = self._needed_loader(), self.find(name)
        if services.model.adapter:
            await self.unload_adapter(name)
            return
        for each in self:
            if each.model.engine is services.model.engine:
                self.remove(each)
        unloading = asyncio.create_task(loader.unload(services.model))
        self._unloading.add(unloading)
        unloading.add_done_callback(self._unloading.discard)
        await asyncio.shield(unloading)  # whoever asks for it may go away

    async def load_adapter(self, name: str, path: str, base: str | None) -> ServedModel:
        """Serves a model as an adapter makes it, under its name. Raises InvalidRequest and EngineUnavailable."""
        model = self.find(base).model
        if model.adapter:
            raise InvalidRequest(f"must be a model, given the adapter {model.adapter!r}", field="model")
        if not model.engine.info.max_loras:
            raise InvalidRequest(f"{model.names[0]} takes no adapters: it is served without --max-loras", param="model")
        self._check_names(name, field="lora_name")
        loading = self._loading_adapters[name] = asyncio.create_task(self._load_adapter(name, path, model))
        return await asyncio.shield(loading)  # whoever asks for it may go away; the engine reads on

    async def _load_adapter(self, name: str, path: str, model: ServedModel) -> ServedModel:
        try:
            await model.engine.adapters.load(name, path)
        except ModelLoadError as error:
            raise InvalidRequest(str(error), param="lora_path") from error
        finally:
            del self._loading_adapters[name]
        if all(each.model is not model for each in self._served):
            raise ModelNotFound(f"{model.names[0]} has been unloaded", param="model")
        adapted = self.add(model.with_adapter(name)).model
        logger.info("adapter %s of %s is served now", name, model.names[0])
        return adapted

    async def unload_adapter(self, name: str) -> None:
        """Requests do not find it any more, and those that use it may end. Raises ModelNotFound."""
        services = next((each for each in self._served if each.model.adapter == name), None)
        if services is None or not name:
            raise ModelNotFound(f"there is no adapter {name[:100]!r}", param="lora_name")
        self.remove(services)
        await asyncio.shield(services.model.engine.adapters.unload(name))
        logger.info("adapter %s is unloaded", name)

    def reload_by(self, reload: Callable[[], Awaitable[None]]) -> None:
        """Has models come and go by `reload` when a client asks for that."""
        self._reload = reload

    async def reload(self) -> None:
        """Reads again which models there are. Raises InvalidRequest where no file says so; OuzelError."""
        if self._reload is None:
            raise InvalidRequest("this server has read its models from no file: --config or --config_path names one")
        await self._reload()

    def _needed_loader(self) -> ModelLoader:
        if self._loader is None:
            raise InvalidRequest("the models of this server stay as they are")
        return self._loader

    def _check_names(self, *names: object, field: str = "name") -> None:
        for name in names:
            if name in self.names or name in self._loading_adapters:
                raise InvalidRequest(f"must be the name of no other model that is served, given {name!r}", field=field)

    def on_removal(self, forget: Callable[[Services], None]) -> None:
        """Has `forget` called with each model that is served no more."""
        self._on_removal.append(forget)
