"""On SIGHUP models come and go as the file of options says then; what runs on a model that goes may end.

So they do when a client asks for it, and when files of OVMS have changed, which are looked at all the time. A model
whose options have changed goes and comes again, once what can be known before its start is right. Models stand in the
order of the file. MODEL itself, which is before them, and the options of the server stay as they are.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.errors import STOPS, OuzelError
from ouzel.options.model_settings import ModelSettings, entry_fields, settings_of_entry
from ouzel.options.options import Options
from ouzel.serve.model_host import ModelHost

logger = logging.getLogger(__name__)

Reread = Callable[[], Options]  # raises InvalidOption
Entries = Mapping[str, Mapping[str, object]]  # of `models`, by name


@asynccontextmanager
async def reloading(
    options: Options,
    reread: Reread | None,
    hangups: asyncio.Event | None,
    changes: ModelChanges,
    host: ModelHost,
) -> AsyncGenerator[None, None]:
    """Heeds `hangups` while the block runs, if there is a file to read again."""
    if reread is None or hangups is None:
        yield
        return
    reload = ModelReload(options, reread, changes, host)
    changes.reload_by(reload.run)
    tasks = [asyncio.create_task(_reload_when(hangups, reload))]
    if options.seen_files.every_s:
        tasks.append(asyncio.create_task(_reload_on_changes(reload, options.seen_files.every_s)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _reload_when(asked: asyncio.Event, reload: "ModelReload") -> None:
    while True:
        await asked.wait()
        asked.clear()
        await _reload(reload)


async def _reload_on_changes(reload: "ModelReload", every_s: float) -> None:
    """Tries each state of the files once, also one that cannot be read."""
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
        logger.error("models stay as they are: %s", error)
    except BaseException:  # broad: nobody awaits this, and the next change must find it
        logger.exception("models could not be reloaded")


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
        self._first = [
            name for name in self._catalogue.names if name not in self._settings
        ]  # MODEL

    async def run(self) -> None:
        """Raises InvalidOption where the file is wrong; a model that cannot be read or loaded is logged."""
        async with self._running:
            options = await asyncio.to_thread(self._reread)
            self.seen_files = options.seen_files
            for warning in options.warnings:
                logger.warning(warning)
            for name, problem in options.problems.items():
                logger.error(
                    "%s: %s",
                    f"model {name} stays as it is" if name else "models of the file go",
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
                "model %s cannot be loaded: MODEL, or what was loaded by request, has that name",
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
                await self._changes.unload(name)
            self._catalogue.arrange([*self._first, *wanted])
            for name in wanted:
                if name in entries and (name in going or name not in served):
                    await self._is_done(name, self._changes.load(entries[name]))
        self._settings = wanted
        logger.info(
            "models were read again: %s are served", ", ".join(self._catalogue.names) or "none"
        )

    async def _stays(self, name: str, wanted: dict[str, ModelSettings], entries: Entries) -> bool:
        """Tells whether a model is wanted as it is; so it is where the new entry is wrong, and the log says why."""
        settings = self._settings[name]
        is_changed = name in entries and wanted[name] != settings
        if is_changed and not await self._is_done(name, self._host.check(entries[name])):
            wanted[name] = settings
        return wanted.get(name) == settings

    async def _is_done(self, name: str, change: Awaitable[object]) -> bool:
        """Logs why it is not."""
        try:
            await change
        except OuzelError as error:
            logger.error("model %s cannot be loaded: %s", name, error)
            return False
        return True


def _named_settings(options: Options) -> dict[str, ModelSettings]:
    """Returns those of the models that the file or flags name, besides MODEL."""
    return {
        str(entry_fields(entry)["name"]): settings_of_entry(entry, options.values, "the model")
        for entry in options.models.models
    }
