"""Loads models for requests and unloads idle ones, one after the other, in one event loop."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from ouzel.errors import STOPS, UNEXPECTED, EngineUnavailable, ModelNotFound, OuzelError
from ouzel.lifecycle.models import Group, ManagedModel, make_too_large
from ouzel.lifecycle.mover import Mover
from ouzel.lifecycle.states import Event, ModelState
from ouzel.lifecycle.turns import Limits, Step, choose_step
from ouzel.lifecycle.waiters import Waiters

logger = logging.getLogger(__name__)

_SHUTTING_DOWN = "the server is shutting down"


class Residents:
    """The models of a server that come and go."""

    def __init__(
        self,
        mover: Mover,
        limits: Limits,
        *,
        max_waiting: int,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """At most `max_waiting` requests wait for models. `clock` returns seconds."""
        self.limits = limits
        self._mover = mover
        self._clock = clock or asyncio.get_running_loop().time
        self._groups: dict[str, Group] = {}
        self._waiters = Waiters(max_waiting)
        self._closed: frozenset[str] = frozenset()  # names of groups without new requests
        self._leaving: Counter[str] = Counter()  # operators that unload each group, by its name
        self._blocked: list[ManagedModel] = []  # models whose files are being deleted
        self._moving: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._changes: list[asyncio.Future[None]] = []  # set at the next change of a state
        self._is_closing = False

    # The models

    @property
    def models(self) -> list[ManagedModel]:
        return [model for group in self._groups.values() for model in group.models]

    def find(self, name: str) -> ManagedModel | None:
        """Returns the model with that name, or with an adapter of that name."""
        return next((model for model in self.models if name in model.all_names), None)

    def is_in_memory(self, name: str) -> bool:
        """Tells whether a request for the model can begin at once."""
        model = self.find(name)
        return model is None or self._is_open(model)

    def find_rest_s(self, model: ManagedModel) -> float | None:
        """Returns the seconds until the model is unloaded if no request comes; None: never."""
        if not model.state.is_loaded or model.expires_s is None or model.is_permanent:
            return None
        if model.num_open:
            return model.keep_alive_now_s
        return max(model.expires_s - self._clock(), 0.0)

    def list_away(self) -> list[str]:
        """Returns the names of the models that are not in memory, and of their adapters."""
        away = [model for model in self.models if not model.state.is_loaded]
        return [name for model in away for name in model.all_names]

    def add(self, model: ManagedModel, *, is_loaded: bool = False) -> None:
        """Adds a model; its names must be new."""
        group = self._groups.setdefault(model.group_name, Group(model.group_name))
        group.models.append(model)
        if is_loaded:
            model.apply(Event.LOAD)
            model.finish_load(self._clock(), 0.0)
        self._plan()

    def forget(self, name: str) -> None:
        """Removes a model that is not in memory, or that the caller unloads.

        Requests that wait for it end with ModelNotFound.
        """
        for group in list(self._groups.values()):
            for model in list(group.models):
                if name in model.names:
                    group.models.remove(model)
                    self._waiters.refuse(
                        model, ModelNotFound(f"the model {name!r} was removed", param="model")
                    )
            if not group.models:
                del self._groups[group.name]
        self._tell_change()
        self._plan()

    # Requests

    @property
    def num_waiting(self) -> int:
        return len(self._waiters)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[ManagedModel, None]:
        """Keeps a model in memory while the block runs; loads it first if necessary.

        Raises ModelNotFound, Overloaded, EngineUnavailable, and InvalidRequest for a model that
        is too large.
        """
        model = self.find(name)
        if model is None:
            raise ModelNotFound(f"the model {name[:100]!r} does not exist", param="model")
        await self._enter(model)
        try:
            yield model
        finally:
            self._leave(model)

    async def load(self, name: str) -> None:
        """Loads a model as a request would, and returns when it is in memory."""
        async with self.use(name):
            pass

    async def unload(self, name: str) -> None:
        """Unloads the group of a model when its open requests have ended.

        New requests wait, and load it again. Returns when the model is not in memory.
        """
        model = self.find(name)
        if model is None:
            return
        await self.wait_for_move(model)
        self._leaving[model.group_name] += 1
        self._plan()
        try:
            while model.state.is_loaded and self.find(name) is model and not self._is_closing:
                await self._next_change()
        finally:
            self._leaving[model.group_name] -= 1
            self._plan()

    @contextmanager
    def blocked(self, model: ManagedModel) -> Generator[None, None, None]:
        """Refuses requests for a model that is not in memory while the block runs."""
        self._blocked.append(model)
        try:
            yield
        finally:
            self._blocked.remove(model)

    async def settle(self) -> None:
        """Waits until no load or unload is running or due."""
        self._plan()
        while self._moving is not None:
            await asyncio.wait([self._moving])

    async def wait_for_move(self, model: ManagedModel) -> None:
        """Waits while the model is being loaded or unloaded."""
        while model.state in (ModelState.LOADING, ModelState.UNLOADING):
            await self._next_change()

    async def _next_change(self) -> None:
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes.append(change)
        await change

    def _tell_change(self) -> None:
        changes, self._changes = self._changes, []
        for change in changes:
            if not change.done():
                change.set_result(None)

    async def _enter(self, model: ManagedModel) -> None:
        if self._is_closing:
            raise EngineUnavailable(_SHUTTING_DOWN, retry_after_s=1.0)
        if self._is_open(model):
            self._begin(model)
            return
        if model in self._blocked:
            raise EngineUnavailable(
                f"the files of the model {model.name!r} are being deleted", retry_after_s=2.0
            )
        if model.is_in_back_off(self._clock()):
            raise model.describe_failure(self._clock())
        waiter = self._waiters.add(model)
        self._plan()
        try:
            await waiter.ready
        except asyncio.CancelledError:
            if self._waiters.remove(waiter):
                self._plan()
            elif waiter.was_admitted:
                self._leave(model)
            raise

    def _is_open(self, model: ManagedModel) -> bool:
        """Tells whether the model takes a request now."""
        is_open = model.state.is_loaded and model.group_name not in self._closed
        return is_open and not self._mover.is_broken(model.name)

    def _begin(self, model: ManagedModel) -> None:
        model.begin(self._clock())

    def _leave(self, model: ManagedModel) -> None:
        """Ends a request. The last one ends when nothing runs in the engine any more.

        A response in the background runs longer than the request that began it.
        """
        is_last = model.num_open == 1 and not self._is_closing
        if is_last and self._mover.num_unfinished(model.name):
            task = asyncio.get_running_loop().create_task(self._leave_later(model))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            return
        model.end(self._clock())
        self._plan()

    async def _leave_later(self, model: ManagedModel) -> None:
        try:
            await self._mover.wait_until_unused(model.name)
        finally:
            model.end(self._clock())
            self._plan()

    # Decisions

    def _plan(self) -> None:
        """Admits requests whose model is in memory, and begins the next load or unload."""
        if self._is_closing:
            return
        now_s = self._clock()
        step = self._choose(now_s)
        while self._waiters.admit(self._is_open, self._begin):
            step = self._choose(now_s)
        self._set_timer()
        if self._moving is not None:
            return
        if step.too_large:
            self._refuse_too_large(step.too_large)
        move: Awaitable[None] | None = None
        if unmeasured := self._find_unmeasured(now_s):
            move = self._measure(unmeasured)
        elif step.unload:
            makes_room = step.unload in step.closed - self._list_leaving()
            move = self._unload(self._groups[step.unload], makes_room=makes_room)
        elif step.load:
            move = self._load(self._groups[step.load])
        if move is not None:
            self._moving = asyncio.get_running_loop().create_task(self._move(move))

    def _choose(self, now_s: float) -> Step:
        views = {name: group.view(now_s) for name, group in self._groups.items()}
        step = choose_step(views, self._waiters.groups, self.limits, now_s, self._list_leaving())
        self._closed = step.closed
        return step

    def _find_unmeasured(self, now_s: float) -> ManagedModel | None:
        """Returns a model whose memory must be measured before the next decision."""
        if self.limits.max_bytes is None or not self._waiters:
            return None
        waited = set(self._waiters.groups)
        counted = [
            model
            for group in self._groups.values()
            for model in (*group.loaded, *(group.list_missing(now_s) * (group.name in waited)))
        ]
        return next((model for model in counted if not model.is_measured), None)

    def _list_leaving(self) -> set[str]:
        """Returns the groups that an operator unloads, or that have an engine that has ended."""
        return {
            name
            for name, group in self._groups.items()
            if self._leaving[name] > 0
            or any(self._mover.is_broken(model.name) for model in group.loaded)
        }

    def _refuse_too_large(self, names: Iterable[str]) -> None:
        for group in [self._groups[name] for name in names]:
            for model in group.models:
                self._waiters.refuse(model, make_too_large(model, group, self.limits))

    def _set_timer(self) -> None:
        """Plans again when the next idle group expires."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_s = self._clock()
        views = [group.view(now_s) for group in self._groups.values()]
        times = [view.expires_s for view in views if view.is_loaded and view.expires_s is not None]
        if times and self._moving is None:
            delay_s = max(min(times) - now_s, 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._plan)

    # Moves

    async def _move(self, move: Awaitable[None]) -> None:
        try:
            await move
        except STOPS:
            raise
        except BaseException:  # broad: later moves must go on
            logger.exception("a model could not be moved")
        finally:
            self._moving = None
            self._tell_change()
        self._plan()

    async def _measure(self, model: ManagedModel) -> None:
        try:
            model.set_memory(await self._mover.measure(model.name))
        except STOPS:
            raise
        # broad: after any fault the next decision must not ask again at once
        except BaseException as error:
            fault = _describe_fault(error)
            if model.state.is_loaded:
                logger.warning("the memory of model %s is unknown: %s", model.name, fault)
                model.set_memory(0)
                return
            model.begin_load()
            self._fail(model, fault)

    async def _load(self, group: Group) -> None:
        for model in group.list_missing(self._clock()):
            begun_s = self._clock()
            model.begin_load()
            try:
                await self._mover.load(model.name)
            except STOPS:
                self._fail(model, EngineUnavailable("the load was ended", retry_after_s=1.0))
                raise
            except BaseException as error:  # broad: a fault of one model must not stop the others
                self._fail(model, _describe_fault(error))
            else:
                model.finish_load(self._clock(), self._clock() - begun_s)

    def _fail(self, model: ManagedModel, error: OuzelError) -> None:
        if isinstance(error, ModelNotFound):
            model.apply(Event.FILES_GONE)
            model.failure = error
            self._waiters.refuse(model, error)
            return
        model.fail(error, self._clock())
        logger.error("model %s could not be loaded: %s", model.name, error)
        self._waiters.refuse(model, model.describe_failure(self._clock()))

    async def _unload(self, group: Group, *, makes_room: bool) -> None:
        for model in group.loaded:
            model.apply(Event.UNLOAD)
            if makes_room:
                model.num_evictions += 1
            try:
                await self._mover.unload(model.name)
            finally:
                model.finish_unload()

    async def close(self) -> None:
        """Ends a running load, and all waiting requests with EngineUnavailable."""
        self._is_closing = True
        self._tell_change()
        if self._timer is not None:
            self._timer.cancel()
        for model in self.models:
            self._waiters.refuse(model, EngineUnavailable(_SHUTTING_DOWN, retry_after_s=1.0))
        if self._moving is not None:
            self._moving.cancel()
            with suppress(asyncio.CancelledError):
                await self._moving

    def __iter__(self) -> Iterator[ManagedModel]:
        return iter(self.models)


def _describe_fault(error: BaseException) -> OuzelError:
    """Returns the error for clients; a fault that is not ours is written into the log."""
    if isinstance(error, OuzelError):
        return error
    logger.error("unexpected error", exc_info=error)
    return EngineUnavailable(UNEXPECTED, retry_after_s=1.0)
