"""Finds the served models by the names that clients send.

Models can be added and removed while requests run. A request keeps the model that it has found;
later requests do not find a removed model.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from ouzel.api.endpoint.on_demand import ModelNotLoaded, OnDemand
from ouzel.api.endpoint.served_embedder import ServedEmbedder
from ouzel.api.endpoint.services import Services, SharedServices
from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.config import LimitsConfig, MediaConfig, ServerConfig, StoreConfig
from ouzel.errors import EngineUnavailable, InvalidRequest, ModelNotFound
from ouzel.generation import EngineState, ServedModel
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.file_search.search import FileSearch
from ouzel.observability import Metrics
from ouzel.pooling import Task
from ouzel.responses.dialect import OPENAI, ResponseDialect
from ouzel.responses.hosted.file_search_kind import FileSearchKind
from ouzel.responses.hosted.kinds import NO_HOSTED_KINDS, HostedKinds
from ouzel.responses.preparer import Preparer
from ouzel.responses.templates.library import NO_PROMPTS, PromptLibrary
from ouzel.store.base import Store

_USUAL_MEDIA = MediaConfig()


class Catalogue:
    """The served models in order. The first model answers requests that name no model."""

    def __init__(
        self,
        models: Iterable[ServedModel],
        limits: LimitsConfig,
        config: ServerConfig,
        store: Store | None,
        dialect: ResponseDialect = OPENAI,
        *,
        hosted: HostedKinds = NO_HOSTED_KINDS,
        prompts: PromptLibrary = NO_PROMPTS,
        max_file_bytes: int = StoreConfig().max_file_bytes,
        containers: Containers | None = None,
        embedding_model: str = "",
        media: MediaConfig = _USUAL_MEDIA,
        speech: SpeechServices | None = None,
    ) -> None:
        """`dialect` is the dialect of the Responses API.

        `hosted` are tools that the server runs, `containers` run the code of models, `prompts` are
        templates of responses. `max_file_bytes` limits an uploaded file, `embedding_model` makes
        the vectors of vector stores, and `media` limits the files that messages name. `speech` is
        needed for speech models.
        """
        self._served: list[Services] = []
        self._places: dict[str, int] = {}  # position by the first name of a model
        self._tasks: dict[str, Task] = {}  # task by every name that a model has had
        self._coming: list[str] = []  # names of models that are being loaded
        self._reserved: list[str] = []  # names that no other model may take for now
        self._on_removal: list[Callable[[Services], None]] = []
        self._on_demand: OnDemand | None = None
        # metrics of models that are not in memory, by name
        self._kept_metrics: dict[str, Metrics] = {}
        self._is_leaving = False
        file_search = None
        if store is not None:
            embedder = ServedEmbedder(self, embedding_model)
            file_search = FileSearch(store.vector_stores, embedder)
            hosted = hosted.with_kind(FileSearchKind(file_search))
        self.shared = SharedServices.of(
            limits,
            config,
            store,
            self._preparers,
            dialect=dialect,
            hosted=hosted,
            prompts=prompts,
            max_file_bytes=max_file_bytes,
            containers=containers,
            file_search=file_search,
            media=media,
            speech=speech,
        )
        for model in models:
            self.add(model)

    def _preparers(self) -> list[Preparer]:
        return [each.preparer for each in self._served]

    def __iter__(self) -> Iterator[Services]:
        return iter(tuple(self._served))

    @property
    def on_demand(self) -> OnDemand | None:
        """Returns the models that come and go; None if all models stay in memory."""
        return self._on_demand

    def set_on_demand(self, on_demand: OnDemand) -> None:
        self._on_demand = on_demand

    @property
    def kept_metrics(self) -> list[Metrics]:
        """Returns the metrics of models that come and go, and are not in memory."""
        kept = self._kept_metrics
        return [kept[name] for name in self.away if name in kept]

    @property
    def away(self) -> list[str]:
        """Returns the names of the models that are not in memory, but that a request loads."""
        if self._on_demand is None:
            return []
        here = self._list_here()
        away = [name for name in self._on_demand.residents.list_away() if name not in here]
        return sorted(away, key=lambda name: self._places.get(name, len(self._places)))

    def _list_here(self) -> set[str]:
        return {name for each in self._served for name in each.model.names}

    @property
    def only(self) -> Services | None:
        """Returns the only model, or None. Then the name in a request does not matter.

        A model that is being loaded counts too.
        """
        return self._served[0] if len(self._served) == 1 and not self._coming else None

    @property
    def bases(self) -> list[Services]:
        """Returns the models with an engine of their own, so without adapters."""
        return [each for each in self._served if not each.model.adapter]

    @property
    def first(self) -> Services:
        """Returns the first model.

        Raises ModelNotFound if no model is served, EngineUnavailable if the first is being loaded,
        and ModelNotLoaded if it is not in memory.
        """
        self._check_coming(self._served)
        if not self._served:
            raise ModelNotFound("this server has no model now", param="model")
        return self._served[0]

    def first_for(self, *tasks: Task) -> Services:
        """Returns the first model for the first task that any model has, else the first model.

        Raises ModelNotFound if no model is served, EngineUnavailable if the first model for a task
        is being loaded, and ModelNotLoaded if it is not in memory.
        """
        for task in tasks:
            able = self.list_for(task)
            self._check_coming(able, task)
            if able:
                return able[0]
        return self.first

    def list_for(self, task: Task) -> list[Services]:
        return [each for each in self._served if each.model.engine.info.task == task]

    def _check_coming(self, able: Sequence[Services], task: Task | None = None) -> None:
        """Checks that no model that comes before these is being loaded, or is not in memory.

        Only a model that may have the task counts. Raises EngineUnavailable and ModelNotLoaded.
        """
        place = self._place(able[0]) if able else len(self._places) + 1
        for name in [*self.away, *self._coming]:
            is_before = self._places.get(name, len(self._places)) < place
            if is_before and (task is None or self._may_have(name, task)):
                self.check_loading(name)

    def _may_have(self, name: str, task: Task) -> bool:
        """Tells whether a model may have the task, by its last load or by its files."""
        if name in self._tasks:
            return self._tasks[name] == task
        on_demand = self._on_demand
        managed = None if on_demand is None else on_demand.residents.find(name)
        if on_demand is None or managed is None:
            return True
        return (on_demand.describe(managed).task or "generate") == task

    @property
    def names(self) -> list[str]:
        """Returns the names of all models; models that come and go keep their order."""
        bases = {
            name: (each.model.parent_names or each.model.names)[0]
            for each in self._served
            for name in each.model.names
        }
        if self._on_demand is None:
            return list(bases)
        known = [name for model in self._on_demand.residents for name in model.all_names]
        places = {name: place for place, name in enumerate(known)}
        bases |= {name: name for name in self.away}
        return sorted(bases, key=lambda name: places.get(bases[name], len(places)))

    @property
    def state(self) -> EngineState:
        """Returns READY if any model takes requests, else the state of the first model.

        A model that a request would load takes requests too.
        """
        states = [each.model.engine.state for each in self._served]
        if not states:
            states = [EngineState.CLOSED if self._on_demand is None else EngineState.READY]
        state = EngineState.READY if EngineState.READY in states else states[0]
        is_ready_and_leaving = self._is_leaving and state is EngineState.READY
        return EngineState.LEAVING if is_ready_and_leaving else state

    @property
    def reason(self) -> str:
        """Returns the reason of the state, as a text for people."""
        state = self.state
        reasons = [
            each.model.engine.reason for each in self._served if each.model.engine.state is state
        ]
        if reasons:
            return reasons[0]
        is_leaving = state is EngineState.LEAVING
        return "the server is about to stop" if is_leaving else "this server has no model now"

    def find(self, name: str | None) -> Services:
        """Returns the model with that name; without a name, the first model.

        Raises ModelNotFound, or EngineUnavailable if the model is being loaded.
        """
        if not name:
            return self.first
        for each in self._served:
            if name in each.model.names:
                return each
        self.check_loading(name)
        raise ModelNotFound(
            f"the model {name[:100]!r} does not exist; this server has: {', '.join(self.names)}",
            param="model",
        )

    def coming(self, names: Sequence[str]) -> AbstractContextManager[None]:
        """Lets requests for these models fail with "try again later" while the block runs."""
        return _list_names(names, self._coming)

    def check_loading(self, *names: str) -> None:
        """Raises ModelNotLoaded if a model with one of the names is not in memory.

        Raises EngineUnavailable if it is being loaded, and does not come and go.
        """
        away = self.away
        for name in names:
            if name in away:
                raise ModelNotLoaded(name)
            if name in self._coming:
                raise EngineUnavailable(
                    f"the model {name[:100]!r} is being loaded", retry_after_s=2.0
                )

    def add(self, model: ServedModel) -> Services:
        """Serves a model, and its adapters, from now on.

        Raises InvalidRequest if a name is taken.
        """
        adapted = (
            []
            if model.adapter
            else [model.with_adapter(name) for name in model.engine.info.adapters]
        )
        for each in adapted:
            if each.adapter in model.names:
                raise InvalidRequest(
                    f"an adapter must have another name than its model, given {each.adapter!r}"
                )
        self._check_names(*model.names, *(each.adapter for each in adapted))
        self._tasks |= dict.fromkeys(model.names, model.engine.info.task)
        services = self._make_services(model)
        self._served += [services, *map(self._make_services, adapted)]
        self._served.sort(key=self._place)
        return services

    def _make_services(self, model: ServedModel) -> Services:
        return Services.of(model, self.shared, self._kept_metrics.pop(model.names[0], None))

    def leave(self) -> None:
        """Enters LEAVING: health checks ask for no more requests, which are still taken."""
        self._is_leaving = True
        for each in self.bases:
            each.model.engine.leave()

    def arrange(self, names: Iterable[str]) -> None:
        """Orders models by these names, now and when models are added; others come last."""
        self._places = {name: place for place, name in enumerate(names)}
        self._served.sort(key=self._place)

    def _place(self, services: Services) -> int:
        """Returns the position of a model in the order.

        Adapters have the position of their model.
        """
        model = services.model
        return self._places.get((model.parent_names or model.names)[0], len(self._places))

    def remove(self, services: Services) -> None:
        """Removes a model from the catalogue. The caller stops its engine."""
        self._served.remove(services)
        if self._on_demand is not None:
            self._kept_metrics[services.model.names[0]] = services.metrics
        for forget in self._on_removal:
            forget(services)

    def reserved(self, names: Sequence[str], field: str = "name") -> AbstractContextManager[None]:
        """Reserves the names of a model while the block loads it.

        Raises InvalidRequest if a name is taken.
        """
        self._check_names(*names, field=field)
        return _list_names(names, self._reserved)

    def add_removal_listener(self, forget: Callable[[Services], None]) -> None:
        """Registers `forget`, which is called with each removed model."""
        self._on_removal.append(forget)

    def _check_names(self, *names: str, field: str = "name") -> None:
        here = self._list_here()
        for name in names:
            if name in here or name in self._reserved:
                raise InvalidRequest(
                    f"must differ from the names of all served models, given {name!r}",
                    field=field,
                )


@contextmanager
def _list_names(names: Sequence[str], in_list: list[str]) -> Iterator[None]:
    """Adds the names to the list while the block runs."""
    in_list += names
    try:
        yield
    finally:
        for name in names:
            in_list.remove(name)
