"""Submits requests to an engine and reads its outputs as async streams.

Rules
1. The stream of every submitted request ends, with exactly one final output per choice: when the
   engine dies, the client makes the missing ones, with finish_reason `error`.
2. Leaving a stream early aborts the request. There is no other handling of disconnects.
3. The commands of one turn of the event loop are one message; the outputs of a step arrive as one
   message.
4. An engine that dies is restarted (`restart_pauses`), unless it was never ready (for example, a
   broken model directory).
5. An engine that hangs (`hang_watch`) counts as dead: its process is killed. A thread cannot be
   killed; its end is awaited.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from ouzel.engine.loop import EngineSpec
from ouzel.engine_client.adapter_changes import AdapterChanges
from ouzel.engine_client.admission import Admission
from ouzel.engine_client.background import lower_priority
from ouzel.engine_client.engine_activity import EngineActivity
from ouzel.engine_client.engine_state import SHUTTING_DOWN, STOPPED, EngineState, EngineStatus
from ouzel.engine_client.hang_watch import HangWatch
from ouzel.engine_client.links import EngineLink, StartLink, start_process, start_thread
from ouzel.engine_client.open_requests import OpenRequests
from ouzel.engine_client.restart_pauses import RestartPauses
from ouzel.errors import STOPS, EngineUnavailable, ModelLoadError
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_messages import (
    AbortRequest,
    AdapterFailed,
    AdapterLoaded,
    AdapterUnloaded,
    AddRequest,
    EngineCommand,
    EngineDown,
    EngineReady,
    Heartbeat,
    Shutdown,
    StepResult,
)
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput

logger = logging.getLogger(__name__)

GivenTo = Callable[[int], None] | None  # called with the number of the engine that got a request

_STOP_TIMEOUT_S = 10.0  # time for an engine to close after Shutdown before it is killed
_ABORT_TIMEOUT_S = 1.0  # time for the final outputs of aborted requests
_EXIT_TIMEOUT_S = 1.0  # time for a process to exit after it closed its connection


class EngineClient:
    """Implements `Engines` with one engine, and keeps it alive."""

    def __init__(
        self,
        spec: EngineSpec,
        *,
        in_thread: bool = False,
        start_link: StartLink | None = None,
        max_queued_requests: int = 256,
        step_timeout_s: float = 300.0,
    ) -> None:
        self._spec = spec
        self._in_thread = in_thread
        self._start_link = start_link or (start_thread if in_thread else start_process)
        self._max_queued_requests = max_queued_requests
        self._link: EngineLink | None = None
        self._outgoing: list[EngineCommand] = []
        self._info: EngineInfo | None = None
        self._stats: EngineStats | None = None
        self._hang_watch = HangWatch(
            heartbeat_every_s=spec.heartbeat_every_s, step_timeout_s=step_timeout_s
        )
        self._admission = Admission(self)
        self._supervisor: asyncio.Task[None] | None = None
        self._status = EngineStatus(spec.label)
        self._activity = EngineActivity()
        self._requests = OpenRequests()
        self.adapters = AdapterChanges(self._send, is_running=lambda: self.takes_requests)
        self.num_restarts = 0

    @property
    def state(self) -> EngineState:
        return self._status.state

    @property
    def reason(self) -> str:
        return self._status.reason

    # Life

    async def start(self) -> EngineInfo:
        """Starts the engine and waits until it is ready. Raises ModelLoadError if it fails."""
        self._supervisor = asyncio.create_task(self._supervise(), name="engine supervisor")
        while self.state is EngineState.STARTING:
            await self._status.change()
        if self.state is EngineState.FAILED:
            await self._supervisor
            raise ModelLoadError(self.reason)
        return self.info

    def leave(self) -> None:
        self._status.leave()

    async def drain(self, timeout_s: float, *, reason: str = SHUTTING_DOWN) -> None:
        """Admits no more requests and waits for the admitted ones.

        Aborts the rest after the timeout.
        """
        self._status.enter(EngineState.DRAINING, reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._admission.empty()
                await self._requests.empty()
        for request_id in self._requests.ids():
            self.abort(request_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ABORT_TIMEOUT_S):
                await self._requests.empty()

    async def close(self, *, reason: str = STOPPED) -> None:
        """Stops the engine; open streams end with `error`."""
        # A process that still loads does not read its messages.
        can_end = self.takes_requests or self._in_thread
        timeout_s = _STOP_TIMEOUT_S if can_end else 0.0
        self._status.enter(EngineState.CLOSED, reason)
        if self._link is not None:
            self._flush()
            self._link.send([Shutdown()])
            await self._link.stop(timeout_s)
        if self._supervisor is not None:
            self._supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervisor
        self._lose_requests(reason)

    # Requests

    @property
    def info(self) -> EngineInfo:
        if self._info is None:
            raise EngineUnavailable(self.reason, retry_after_s=1.0)
        return self._info

    @property
    def num_unfinished(self) -> int:
        return self._admission.num_admitted

    @property
    def members(self) -> Sequence["EngineClient"]:
        """Returns this client only."""
        return (self,)

    def stats(self) -> EngineStats | None:
        return self._stats

    @property
    def step_age_s(self) -> float:
        """Returns the duration of the engine's present step; 0 between steps."""
        return self._hang_watch.step_age_s

    @property
    def open_request_ids(self) -> tuple[str, ...]:
        return self._requests.ids()

    @property
    def max_admitted(self) -> int:
        return self.info.max_num_seqs + self._max_queued_requests

    @property
    def num_free(self) -> int:
        return self._admission.num_free

    @contextmanager
    def admit(self, num_requests: int = 1) -> Iterator[None]:
        with self._admission.places(num_requests):
            yield

    async def wait_until_unused(self) -> None:
        await self._admission.empty()

    async def submit(
        self,
        request: EngineRequest,
        given_to: GivenTo = None,
        accepted: asyncio.Event | None = None,
    ) -> AsyncGenerator[list[StepOutput], None]:
        if not self.takes_requests:
            raise EngineUnavailable(self.reason, retry_after_s=2.0)
        request = lower_priority(request)
        collector = self._requests.open(request, self.info, accepted)
        self._send(AddRequest(request))
        try:
            while not collector.is_finished:
                yield await collector.read()
        finally:
            if self._requests.leave(request.request_id, collector):
                self._send(AbortRequest(request.request_id))

    def abort(self, request_id: str, index: int | None = None) -> None:
        """Ends one choice, or all; their final outputs follow."""
        self._send(AbortRequest(request_id, index))

    @property
    def takes_requests(self) -> bool:
        """Tells whether `submit` finds an engine. A draining engine that dies is not restarted."""
        return self._link is not None and self.state in (
            EngineState.READY,
            EngineState.LEAVING,
            EngineState.DRAINING,
        )

    # Inside

    def _send(self, command: EngineCommand) -> None:
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(command)

    def _flush(self) -> None:
        commands, self._outgoing = self._outgoing, []
        for command in self._link.send(commands) if commands and self._link is not None else []:
            if isinstance(command, AddRequest) and command.request.request_id in self._requests:
                self._requests.lose(
                    command.request.request_id, "the request cannot be sent to the engine"
                )

    async def _supervise(self) -> None:
        try:
            await self._keep_running()
        except STOPS:
            raise
        except BaseException as error:  # nobody awaits this task: an error must not pass unseen
            logger.exception("the engine's supervisor failed")
            self._give_up(f"the engine cannot be kept running: {error}")

    async def _keep_running(self) -> None:
        """Runs engines one after the other, until `close` or until the first one cannot start."""
        pauses = RestartPauses()
        while True:
            started_at = time.monotonic()
            if not await self._run_one():
                return
            await asyncio.sleep(pauses.choose_pause(time.monotonic() - started_at))
            self.num_restarts += 1

    async def _run_one(self) -> bool:
        """Runs one engine to its end; returns whether to start another."""
        try:
            link = self._link = await self._start_link(self._spec)
        except OSError as error:  # no more processes, files or memory: this may pass
            return self._lose_engine(f"the engine cannot be started: {error}")
        try:
            return self._lose_engine(await self._hang_watch.guard(self._read(link), link.remedy))
        finally:
            self._link = None
            await link.stop(None if self._in_thread else _EXIT_TIMEOUT_S)

    def _lose_engine(self, reason: str) -> bool:
        """Ends the requests of a dead engine; returns whether to start another."""
        if self.state is EngineState.CLOSED:
            return False
        if self._info is None:  # the engine was never ready: a restart would not help
            self._give_up(reason)
            return False
        if self.state is EngineState.DRAINING:
            self._lose_requests(reason)
            return False
        self._status.enter(EngineState.RESTARTING, f"{reason}; it is being restarted")
        self._lose_requests(reason)
        return True

    async def _read(self, link: EngineLink) -> str:
        """Reads an engine's events until it is gone; returns the reason."""
        self._activity.begin()
        while (event := await link.receive()) is not None:
            self._hang_watch.note_event()
            if not isinstance(event, StepResult):
                self._activity.note(event)
            match event:
                case StepResult(outputs, stats):
                    self._stats = stats
                    self._requests.distribute(outputs)
                case Heartbeat():
                    self._hang_watch.read_heartbeat(event)
                case EngineReady(info):
                    self._hang_watch.begin()
                    if self._info is not None and info.max_model_len < self._info.max_model_len:
                        return f"the restarted engine has room for {info.max_model_len} tokens only"
                    if self._info is not None:
                        self.adapters.tell_again(info.adapters)
                    self._info = info
                    self._become_ready(info)
                case AdapterLoaded() | AdapterFailed() | AdapterUnloaded():
                    self.adapters.answer(event)
                    self._become_ready(self.info)
                case EngineDown(message):
                    return message  # later events have no reader
        doing = self._activity.name(has_requests=bool(self._requests.ids()))
        status = await link.exit_status()
        return f"the {self._status.name} stopped unexpectedly ({status}) while {doing}"

    def _become_ready(self, info: EngineInfo) -> None:
        """Enters READY once a new or restarted engine has all its adapters."""
        if (
            self.state in (EngineState.STARTING, EngineState.RESTARTING)
            and not self.adapters.is_telling
        ):
            self._status.enter(EngineState.READY, f"{info.model_type} on {info.device}")

    def _give_up(self, reason: str) -> None:
        self._lose_requests(reason)
        self._status.enter(EngineState.FAILED, reason)

    def _lose_requests(self, reason: str) -> None:
        """Makes the final outputs of all open choices in place of the engine."""
        self._stats = None
        self._outgoing.clear()
        self.adapters.lose(reason)
        self._requests.lose_all(reason)
