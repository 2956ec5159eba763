"""The models that come and go, as the API sees them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from ouzel.api.endpoint.services import Services
from ouzel.errors import EngineUnavailable, ModelNotFound
from ouzel.lifecycle.models import ManagedModel
from ouzel.lifecycle.residents import Residents
from ouzel.pooling import Task

_MAX_CHOICES = 8  # models of one request, one after the other
_RETRY_AFTER_S = 2.0


class ModelNotLoaded(EngineUnavailable):
    """The model is not in memory; a request that may wait loads it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the model {name[:100]!r} is not in memory; a request for an answer loads it",
            retry_after_s=_RETRY_AFTER_S,
        )
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOfModel:
    """Facts about a model that its files tell without a load; None: unknown."""

    created: int  # unix seconds
    num_bytes: int | None = None  # size of its weights on disk
    max_model_len: int | None = None
    task: Task | None = None
    model_type: str = ""
    has_chat_template: bool = True  # presumed, until the files are read
    has_vision: bool = False


class OnDemand(Protocol):
    @property
    def residents(self) -> Residents: ...

    async def refresh(self) -> None:
        """Looks for models that have been added to the disk, or removed from it."""
        ...

    async def wait_for_files(self) -> None:
        """Waits until the small files of all models have been read."""
        ...

    async def add(self, fields: Mapping[str, object]) -> ManagedModel:
        """Adds the model of an entry of `models`, without a load. Raises InvalidRequest."""
        ...

    async def add_pulled(self, name: str) -> ManagedModel:
        """Adds a model that was just downloaded, without a load. Raises InvalidRequest."""
        ...

    async def remove(self, name: str) -> None:
        """Unloads a model after its requests, and forgets it."""
        ...

    def find_source(self, model: ManagedModel) -> str:
        """Returns MODEL of a model: a path, a repository or a short name."""
        ...

    def is_in_directory(self, name: str) -> bool:
        """Tells whether the model was found in `--models-dir`."""
        ...

    def describe(self, model: ManagedModel) -> FilesOfModel:
        """Returns the known facts about a model's files."""
        ...


Choose = Callable[[], Awaitable[Services]]


@asynccontextmanager
async def hold_chosen(
    on_demand: OnDemand, choose: Choose, name: str
) -> AsyncGenerator[tuple[Services, ManagedModel | None], None]:
    """Keeps the model that `choose` returns in memory while the block runs, and loads it first.

    `name` is the answer of `find_name`. The second value is None for a model that does not come and
    go. `choose` is called again when the model is in memory: meanwhile a request without a name may
    be for another model. Raises the errors of `choose` and of `Residents.use`.
    """
    for _ in range(_MAX_CHOICES):
        if on_demand.residents.find(name) is None:
            yield await choose(), None
            return
        async with on_demand.residents.use(name) as model:
            name, services = await _choose(choose)
            if services is not None and name in model.names:
                yield services, model
                return
    raise EngineUnavailable("the models change too often", retry_after_s=_RETRY_AFTER_S)


async def find_name(on_demand: OnDemand, choose: Choose) -> str:
    """Returns the first name of the model that `choose` returns, or would return.

    A name that nobody knows may be the name of new files. Raises ModelNotFound.
    """
    try:
        name, _ = await _choose(choose)
    except ModelNotFound:
        await on_demand.refresh()
        name, _ = await _choose(choose)
    return name


async def _choose(choose: Choose) -> tuple[str, Services | None]:
    """Returns the chosen model and its first name; None if the model is not in memory."""
    try:
        services = await choose()
    except ModelNotLoaded as error:
        return error.name, None
    model = services.model
    return (model.parent_names or model.names)[0], services
