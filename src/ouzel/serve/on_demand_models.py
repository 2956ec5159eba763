"""Loads models for requests, and unloads them: the models of the options and of `--models-dir`."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.on_demand import FilesOfModel
from ouzel.api.endpoint.services import Services
from ouzel.config.adapters import read_adapters
from ouzel.errors import InvalidRequest, ModelLoadError, ModelNotFound, OuzelError
from ouzel.generation import EngineState, ServedModel
from ouzel.lifecycle.models import ManagedModel
from ouzel.lifecycle.residents import Residents
from ouzel.lifecycle.states import ModelState
from ouzel.lifecycle.turns import Limits
from ouzel.machine.free_memory import available_bytes
from ouzel.machine.quantities import format_size
from ouzel.model_store.presence import is_here
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import ModelSettings
from ouzel.options.options import Options
from ouzel.serve.files_of_model import read_files_of_model
from ouzel.serve.measuring import ModelSize
from ouzel.serve.model_host import ModelHost
from ouzel.serve.model_sizes import find_size
from ouzel.serve.models_dir import list_models
from ouzel.serve.on_demand_limits import MemoryPlan, plan_memory
from ouzel.serve.open_models import CheckedModel, open_model
from ouzel.serve.start_plan import PlannedModel

logger = logging.getLogger(__name__)

DEFAULT_IDLE_S = 300.0  # time without requests, for models that a request loads
_AT_REST = (ModelState.ABSENT, ModelState.ON_DISK, ModelState.FAILED)


@dataclass(slots=True)
class _Known:
    """A model that can be loaded."""

    settings: ModelSettings
    path: Path  # its directory or GGUF file
    is_in_directory: bool = False  # found in --models-dir
    files: FilesOfModel | None = None  # None: not read yet
    max_model_len: int | None = None  # found by a measurement
    plan: MemoryPlan | None = None


def is_as_read(known: _Known) -> bool:
    """Tells whether the files of a model have the time at which they were read."""
    try:
        return known.files is not None and int(known.path.stat().st_mtime) == known.files.created
    except OSError:
        return False


class OnDemandModels:
    """Implements `OnDemand` for the API, and `Mover` for the residents."""

    def __init__(
        self,
        options: Options,
        host: ModelHost,
        catalogue: Catalogue,
        changes: ModelChanges,
        limits: Limits,
    ) -> None:
        self._options = options
        self._host = host
        self._catalogue = catalogue
        self._changes = changes
        self._known: dict[str, _Known] = {}
        self._reading: asyncio.Task[None] | None = None  # reads small files
        self.residents = Residents(
            self, limits, max_waiting=max(options.limits.max_queued_requests, 1)
        )

    # OnDemand

    async def refresh(self) -> None:
        """Adds new models of `--models-dir`, and forgets deleted models that were never loaded."""
        if not self._options.models.models_dir:
            return
        try:
            found = await asyncio.to_thread(list_models, self._options.models.models_dir)
        except OSError as error:
            logger.error("--models-dir cannot be read now: %s", error)
            return
        for name, path in found.items():
            if self.residents.find(name) is None:
                self._add_path(name, path)
        for name, known in list(self._known.items()):
            model = self.residents.find(name)
            is_gone = known.is_in_directory and name not in found
            if is_gone and model is not None and model.state in _AT_REST and not model.num_loads:
                self._forget(name)

    def _add_path(self, name: str, path: Path) -> None:
        try:
            settings = self._host.read_entry({"name": name, "model": str(path)})
        except InvalidOption as error:
            logger.error("%s cannot be served: %s", path, error)
            return
        self._register((name,), _Known(settings, path, is_in_directory=True))

    async def add(self, fields: Mapping[str, object]) -> ManagedModel:
        try:
            settings = self._host.read_entry(fields)
            [name] = settings.model.served_model_name
            if self.residents.find(name) is not None:
                raise InvalidRequest(
                    f"must differ from the names of all served models, given {name!r}",
                    field="name",
                )
            with self._catalogue.reserved([name]):
                checked = await asyncio.to_thread(open_model, settings)
        except (InvalidOption, ModelLoadError) as error:
            raise InvalidRequest(str(error), param="model") from error
        model = self.add_checked(checked)
        if model.is_permanent:
            try:
                await self.residents.load(model.name)
            except OuzelError:
                await self.remove(model.name)
                raise
        return model

    async def add_pulled(self, name: str) -> ManagedModel:
        own = {} if "idle_unload_s" in self._options.values else {"idle_unload_s": DEFAULT_IDLE_S}
        return await self.add({"name": name, "model": name, **own})

    def add_checked(
        self, checked: CheckedModel, loaded: PlannedModel | None = None
    ) -> ManagedModel:
        """Adds a model of the options; `loaded` is its plan if it is in memory already."""
        plan = None if loaded is None else loaded.memory
        known = _Known(checked.settings, checked.local.directory, plan=plan)
        return self._register(checked.names, known, is_loaded=loaded is not None)

    def _register(
        self, names: Sequence[str], known: _Known, *, is_loaded: bool = False
    ) -> ManagedModel:
        option = known.settings.model.idle_unload_s
        idle_s = (DEFAULT_IDLE_S if known.is_in_directory else None) if option is None else option
        lora = known.settings.model.lora
        model = ManagedModel(
            tuple(names),
            adapters=tuple(read_adapters(lora)) if lora else (),
            group=known.settings.model.group,
            keep_alive_s=None if idle_s is None or idle_s < 0 else idle_s,
            is_exclusive=self._options.models.one_group,
        )
        if known.plan is not None:
            model.set_memory(known.plan.num_bytes)
        self._known[model.name] = known
        self.residents.add(model, is_loaded=is_loaded)
        self._begin_reading()
        return model

    def _begin_reading(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_files())

    async def _read_files(self) -> None:
        """Reads the small files of all models that are not read yet, beside other work."""
        while unread := [known for known in self._known.values() if known.files is None]:
            for known in unread:
                known.files = await asyncio.to_thread(
                    read_files_of_model, known.path, known.settings.model.task
                )

    async def wait_for_files(self) -> None:
        if self._reading is not None:
            await asyncio.shield(self._reading)

    async def remove(self, name: str) -> None:
        model = self.residents.find(name)
        if model is None:
            return
        await self.residents.wait_for_move(model)
        self._forget(model.name)
        services = self._find_served(model.name)
        if services is not None:
            await self._changes.end_serving(services)

    def _forget(self, name: str) -> None:
        self._known.pop(name, None)
        self.residents.forget(name)

    def find_source(self, model: ManagedModel) -> str:
        return self._known[model.name].settings.model.model

    def is_in_directory(self, name: str) -> bool:
        model = self.residents.find(name)
        return model is not None and self._known[model.name].is_in_directory

    def describe(self, model: ManagedModel) -> FilesOfModel:
        known = self._known[model.name]
        files = known.files or FilesOfModel(created=0)
        if known.max_model_len is None:
            return files
        return replace(files, max_model_len=known.max_model_len)

    # Mover

    async def measure(self, name: str) -> int:
        known = self._known[name]
        if known.plan is None:
            checked, limits = await self._open(name), self.residents.limits
            if known.settings.vllm.is_chosen:  # its memory is vLLM's own affair
                size = ModelSize(weight_bytes=0, cache_bytes=0, max_model_len=0)
            else:
                size = await find_size(checked)
                known.max_model_len = size.max_model_len
            known.plan = plan_memory(limits, size, known.settings.engine)
        return known.plan.num_bytes

    async def load(self, name: str) -> None:
        model, known = self.residents.find(name), self._known[name]
        assert model is not None
        checked = await self._open(name)
        plan = known.plan
        if plan is not None and plan.num_bytes > (free := available_bytes()):
            raise ModelLoadError(
                f"the model takes {format_size(plan.num_bytes)} of memory, and "
                f"{format_size(free)} are free on this machine now"
            )

        async def serve() -> ServedModel:
            try:
                return await self._host.serve(checked, None if plan is None else plan.share_bytes)
            except InvalidOption as error:
                raise ModelLoadError(str(error)) from error

        await self._changes.serve(model.names, serve)

    async def unload(self, name: str) -> None:
        services = self._find_served(name)
        if services is not None:
            await self._changes.end_serving(services)
        if (known := self._known.get(name)) is not None:
            known.plan = None  # the files may change while the model is not in memory
            if known.files is not None and not await asyncio.to_thread(is_as_read, known):
                known.files = None
                self._begin_reading()

    def num_unfinished(self, name: str) -> int:
        services = self._find_served(name)
        return 0 if services is None else services.model.engine.num_unfinished

    async def wait_until_unused(self, name: str) -> None:
        services = self._find_served(name)
        if services is not None:
            await services.model.engine.wait_until_unused()

    def is_broken(self, name: str) -> bool:
        services = self._find_served(name)
        return services is not None and services.model.engine.state in (
            EngineState.FAILED,
            EngineState.CLOSED,
        )

    def _find_served(self, name: str) -> Services | None:
        return next((each for each in self._catalogue.bases if name in each.model.names), None)

    async def _open(self, name: str) -> CheckedModel:
        """Finds and checks the files of a model; a request never downloads them.

        Raises ModelNotFound if they are gone, and ModelLoadError.
        """
        known = self._known[name]
        model = known.settings.model
        if not await asyncio.to_thread(is_here, model.model, model.cache_dir, model.catalogue):
            raise ModelNotFound(
                f"the files of the model {name!r} are gone: {known.path}", param="model"
            )
        try:
            return await asyncio.to_thread(open_model, known.settings)
        except InvalidOption as error:
            raise ModelLoadError(str(error)) from error
