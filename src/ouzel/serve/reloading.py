"""Loads and unloads models while the server runs, after the file of options has changed.

SIGHUP, a request of a client, or a change of OVMS's files starts a reload. SIGHUP also reloads
the prompts. A model whose options
have changed is unloaded and loaded again, after its new options are checked. Models keep the order
of the file. MODEL itself, which comes first, and the options of the server stay as they are.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.errors import STOPS, OuzelError
from ouzel.options.model_settings import ModelSettings, entry_fields, read_model_entry
from ouzel.options.options import Options
from ouzel.serve.model_host import ModelHost

logger = logging.getLogger(__name__)

Reread = Callable[[], Options]  # raises InvalidOption
ReloadPrompts = Callable[[], Awaitable[None]]
Entries = Mapping[str, Mapping[str, object]]  # entries of `models` by name


@asynccontextmanager
async def reloading(
    options: Options,
    reread: Reread | None,
    hangups: asyncio.Event | None,
    changes: ModelChanges,
    host: ModelHost,
    *,
    reload_prompts: ReloadPrompts | None,
) -> AsyncGenerator[None, None]:
    """Reloads on each SIGHUP while the block runs, if there are files to read again.

    The models are reloaded if there is a file of options.
    """
    if hangups is None:
        yield
        return
    reload = None if reread is None else ModelReload(options, reread, changes, host)
    tasks = [asyncio.create_task(_reload_when(hangups, reload, reload_prompts))]
    if reload is not None:
        changes.set_reload(reload.run)
        every_s = options.seen_files.every_s
        if every_s:
            tasks.append(asyncio.create_task(_reload_on_changes(reload, every_s)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _reload_when(
    hangup: asyncio.Event, reload: "ModelReload | None", reload_prompts: ReloadPrompts | None
) -> None:
    while True:
        await hangup.wait()
        hangup.clear()
        if reload_prompts is not None:
            await reload_prompts()
        if reload is not None:
            await _reload(reload)


async def _reload_on_changes(reload: "ModelReload", every_s: float) -> None:
    """Reloads after each change of the files; a state that fails is tried only once."""
    tried = reload.seen_files.stamps
    while True:
        await asyncio.sleep(every_s)
        stamps = await asyncio.to_thread(reload.seen_files.stamps_now)
        if stamps not in (reload.seen_files.stamps, tried):
            tried = stamps
            await _reload(reload)


async def _reload(reload: "ModelReload") -> None:
    try:
        await reload.run()
    except STOPS:
        raise
    except OuzelError as error:
        logger.error("the models were not reloaded: %s", error)
    except BaseException:  # broad: no task awaits this one, and it must survive for later changes
        logger.exception("the models could not be reloaded")


class ModelReload:
    def __init__(
        self, options: Options, reread: Reread, changes: ModelChanges, host: ModelHost
    ) -> None:
        self.seen_files = options.seen_files
        self._running = asyncio.Lock()
        self._settings = _named_settings(options)
        self._reread = reread
        self._changes = changes
        self._catalogue = changes.catalogue
        self._host = host
        on_demand = self._catalogue.on_demand
        self._first = [  # MODEL
            name
            for name in self._catalogue.names
            if name not in self._settings
            and (on_demand is None or not on_demand.is_in_directory(name))
        ]

    async def run(self) -> None:
        """Reads the options again and changes the models.

        Raises InvalidOption if the file is wrong; the fault of a single model is logged.
        """
        async with self._running:
            options = await asyncio.to_thread(self._reread)
            self.seen_files = options.seen_files
            for warning in options.warnings:
                logger.warning(warning)
            for name, problem in options.problems.items():
                logger.error(
                    "%s: %s",
                    f"model {name} is unchanged" if name else "the models of the file are unloaded",
                    problem,
                )
            await self._change_to(options)

    async def _change_to(self, options: Options) -> None:
        unread = {
            name: settings for name, settings in self._settings.items() if name in options.problems
        }
        wanted = _named_settings(options) | unread
        self._host.take_options(options)
        entries: Entries = {
            str(fields["name"]): fields for fields in map(entry_fields, options.models.models)
        }
        served = set(self._catalogue.names)
        for name in (wanted.keys() & served) - self._settings.keys():
            logger.error(
                "model %s cannot be loaded: MODEL, or a model that a request loaded, has that name",
                name,
            )
            del wanted[name]
        going = [
            name
            for name in self._settings
            if name in served and not await self._stays(name, wanted, entries)
        ]
        with self._catalogue.coming([name for name in going if name in wanted]):
            for name in going:
                await self._changes.remove(name)
            self._catalogue.arrange([*self._first, *wanted])
            for name in wanted:
                if name in entries and (name in going or name not in served):
                    await self._is_done(name, self._changes.add(entries[name]))
        self._settings = wanted
        logger.info(
            "the models were reloaded: %s are served", ", ".join(self._catalogue.names) or "none"
        )

    async def _stays(self, name: str, wanted: dict[str, ModelSettings], entries: Entries) -> bool:
        """Tells whether a model stays loaded without a change.

        If the new entry of the model is wrong, the error is logged and the old settings stay.
        """
        settings = self._settings[name]
        is_changed = name in entries and wanted[name] != settings
        if is_changed and not await self._is_done(name, self._host.check(entries[name])):
            wanted[name] = settings
        return wanted.get(name) == settings

    async def _is_done(self, name: str, change: Awaitable[object]) -> bool:
        """Awaits a change; returns False and logs the error if it fails."""
        try:
            await change
        except OuzelError as error:
            logger.error("model %s cannot be loaded: %s", name, error)
            return False
        return True


def _named_settings(options: Options) -> dict[str, ModelSettings]:
    """Returns the settings of the models in the file and the flags, without MODEL, by name."""
    return {
        str(entry_fields(entry)["name"]): read_model_entry(entry, options.values, "the model")
        for entry in options.models.models
    }
