"""A model that comes and goes, and the group with which it does."""

from dataclasses import dataclass, field

from ouzel.errors import EngineUnavailable, InvalidRequest, OuzelError
from ouzel.lifecycle.states import Event, ModelState, next_state
from ouzel.lifecycle.turns import GroupView, Limits

FIRST_BACK_OFF_S = 2.0
MAX_BACK_OFF_S = 300.0
PERMANENT = "permanent"  # OVMS's name of the group that is never unloaded


@dataclass(slots=True)
class ManagedModel:
    """One model. `keep_alive_s` is its time in memory without requests; None: for ever."""

    names: tuple[str, ...]  # the names of the model for clients
    adapters: tuple[str, ...] = ()  # names of the adapters that are loaded with the model
    group: str = ""  # the group's name; empty: the model is a group of its own
    keep_alive_s: float | None = None
    # at most one exclusive group is in memory, apart from the permanent one (OVMS's rule)
    is_exclusive: bool = False
    state: ModelState = ModelState.ON_DISK
    num_bytes: int | None = None  # memory that it takes; None: never measured
    is_measured: bool = False  # `num_bytes` counts until the files can change: to the next unload
    num_open: int = 0  # open requests
    last_begin_s: float = 0.0
    last_end_s: float = 0.0
    # set by a request for the time until the next unload (Ollama's keep_alive)
    asked_keep_alive_s: float | None = None
    has_asked: bool = False
    failure: OuzelError | None = None
    num_failures: int = 0  # since the last load that succeeded
    retry_s: float = 0.0  # the time of the next load, if the last one failed
    num_loads: int = 0
    loading_s: float = 0.0  # seconds of all loads
    num_evictions: int = 0  # unloads that made room

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def all_names(self) -> tuple[str, ...]:
        return (*self.names, *self.adapters)

    @property
    def group_name(self) -> str:
        """Returns the name of its group. The names of two kinds of groups never meet."""
        return f"group {self.group}" if self.group else f"model {self.name}"

    @property
    def is_permanent(self) -> bool:
        return self.group == PERMANENT

    def apply(self, event: Event) -> None:
        self.state = next_state(self.state, event)

    def begin(self, now_s: float) -> None:
        """Counts a request that begins."""
        if not self.num_open:
            self.apply(Event.FIRST_REQUEST)
        self.num_open += 1
        self.last_begin_s = now_s

    def end(self, now_s: float) -> None:
        """Counts a request that has ended."""
        self.num_open -= 1
        self.last_end_s = now_s
        if not self.num_open:
            self.apply(Event.LAST_REQUEST_ENDED)

    def begin_load(self) -> None:
        if self.state is ModelState.ABSENT:
            self.apply(Event.FILES_FOUND)
        self.apply(Event.LOAD)

    def finish_load(self, now_s: float, took_s: float) -> None:
        self.apply(Event.LOADED)
        self.failure, self.num_failures = None, 0
        self.last_begin_s = self.last_end_s = now_s
        self.num_loads += 1
        self.loading_s += took_s

    def fail(self, error: OuzelError, now_s: float) -> None:
        """Remembers a failed load: the next one waits, longer after each failure."""
        self.apply(Event.LOAD_FAILED)
        self.is_measured = False
        self.failure = error
        self.num_failures += 1
        back_off_s = min(FIRST_BACK_OFF_S * 2 ** (self.num_failures - 1), MAX_BACK_OFF_S)
        self.retry_s = now_s + back_off_s

    def set_memory(self, num_bytes: int) -> None:
        self.num_bytes, self.is_measured = num_bytes, True

    def finish_unload(self) -> None:
        self.apply(Event.UNLOADED)
        self.is_measured = False
        self.has_asked, self.asked_keep_alive_s = False, None

    def ask_keep_alive(self, keep_alive_s: float | None) -> None:
        """Sets the keep-alive of a request; it counts until the model is unloaded."""
        self.has_asked, self.asked_keep_alive_s = True, keep_alive_s

    def is_in_back_off(self, now_s: float) -> bool:
        return self.state is ModelState.FAILED and now_s < self.retry_s

    def describe_failure(self, now_s: float) -> OuzelError:
        """Returns the error of a request during the back-off."""
        assert self.failure is not None
        if self.failure.is_clients:
            return self.failure
        return EngineUnavailable(
            f"the model {self.name!r} could not be loaded: {self.failure}",
            retry_after_s=max(self.retry_s - now_s, 1.0),
        )

    @property
    def keep_alive_now_s(self) -> float | None:
        """Returns the keep-alive of the last request that had one, else the model's own."""
        return self.asked_keep_alive_s if self.has_asked else self.keep_alive_s

    @property
    def expires_s(self) -> float | None:
        """Returns the time when the idle model is to be unloaded; None: never."""
        keep_alive_s = self.keep_alive_now_s
        return None if keep_alive_s is None else self.last_end_s + keep_alive_s


@dataclass(slots=True)
class Group:
    """The models that are loaded and unloaded together."""

    name: str
    models: list[ManagedModel] = field(default_factory=list)

    @property
    def loaded(self) -> list[ManagedModel]:
        return [model for model in self.models if model.state.is_loaded]

    def list_missing(self, now_s: float) -> list[ManagedModel]:
        """Returns the models that a load of the group would load."""
        return [
            model
            for model in self.models
            if model.state in (ModelState.ON_DISK, ModelState.FAILED, ModelState.ABSENT)
            and not model.is_in_back_off(now_s)
        ]

    def view(self, now_s: float) -> GroupView:
        loaded = self.loaded
        is_busy = any(model.num_open for model in loaded)
        return GroupView(
            name=self.name,
            num_models=len(self.models),
            num_bytes=sum(model.num_bytes or 0 for model in self.models),
            is_loaded=bool(loaded),
            is_complete=not self.list_missing(now_s),
            is_busy=is_busy,
            is_permanent=self.models[0].is_permanent,
            is_exclusive=self.models[0].is_exclusive and not self.models[0].is_permanent,
            last_begin_s=max((model.last_begin_s for model in loaded), default=0.0),
            expires_s=None if is_busy else self._expires_s(loaded),
        )

    def _expires_s(self, loaded: list[ManagedModel]) -> float | None:
        times = [model.expires_s for model in loaded]
        if self.models[0].is_permanent or not times or None in times:
            return None
        return max(time_s for time_s in times if time_s is not None)


def make_too_large(model: ManagedModel, group: Group, limits: Limits) -> InvalidRequest:
    """Returns the error of a request whose model never fits, with the figures."""
    num_models, max_loaded = len(group.models), limits.max_loaded
    if max_loaded is not None and num_models > max_loaded:
        return InvalidRequest(
            f"the model {model.name!r} belongs to a group of {num_models} models; the limit of "
            f"models in memory (--max-loaded-models) is {max_loaded}",
            param="model",
        )
    needed = sum(each.num_bytes or 0 for each in group.models)
    return InvalidRequest(
        f"the model {model.name!r} takes {needed / 2**30:.2f} GiB of memory; the limit of all "
        f"models (--models-memory-gib) is {(limits.max_bytes or 0) / 2**30:.2f} GiB",
        param="model",
    )
