"""Connects to a remote vLLM over HTTP: `vllm serve` with its endpoints for token ids.

Rules
1. Each choice is a request to the server and a task here. Cancelling the task closes its
   connection, which aborts the request; an abort by name is also sent, because a proxy may keep the
   connection.
2. Each choice gets exactly one final output: from its task, or from the abort that cancels the
   task.
3. The server is checked regularly. After several failed checks the link ends; the client then makes
   a new link, which waits for the server.
"""

import asyncio
import logging
from contextlib import suppress
from typing import ClassVar

import msgspec

from ouzel.backends.vllm.remote_choice import ID_PREFIX, AnswerError, RemoteChoice
from ouzel.backends.vllm.remote_server import ABORT, GENERATE, RemoteServer, ServerFacts
from ouzel.backends.vllm.sampling_fields import (
    Abilities,
    drop_optional_budget,
    find_refusal,
    make_confirmation,
    make_final_output,
)
from ouzel.client.base import ApiClient, ApiFailure, read_failure
from ouzel.observability.progress import Progress
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_messages import (
    AbortRequest,
    AdapterFailed,
    AdapterUnloaded,
    AddRequest,
    EngineCommand,
    EngineDown,
    EngineEvent,
    EngineLoading,
    EngineReady,
    Heartbeat,
    LoadAdapter,
    Shutdown,
    StepResult,
    UnloadAdapter,
)
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput

logger = logging.getLogger(__name__)

_NUM_LOOKS = 3  # failed checks in a row after which the server counts as gone
_LOOKS_PER_READING = 5  # checks per reading of the metrics
_OK = 200
_REFUSED = (400, 422)
_OVERLOADED = (429, 503)
_NO_STATS = EngineStats(
    num_running=0,
    num_waiting=0,
    num_used_blocks=0,
    num_blocks=0,
    num_prefix_query_tokens=0,
    num_prefix_hit_tokens=0,
    num_preemptions=0,
)


class RemoteLink:
    """Implements `EngineLink` with a remote server."""

    remedy: ClassVar[str] = "its connections are closed"

    def __init__(self, facts: ServerFacts, client: ApiClient, *, look_every_s: float) -> None:
        self._client = client
        self._server = RemoteServer(facts, client)
        self._vocab_size = facts.vocab_size
        self._look_every_s = look_every_s
        self._abilities = Abilities()
        self._stats = _NO_STATS
        self._choices: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._outputs: list[StepOutput] = []  # outputs of this turn of the event loop
        self._aborted: list[str] = []  # names to abort in this turn
        self._others: set[asyncio.Task[None]] = set()
        self._events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._doubt = asyncio.Event()  # set when a connection has failed
        self._life = asyncio.create_task(self._live(), name="remote engine")

    # Commands of the client

    def send(self, commands: list[EngineCommand]) -> list[EngineCommand]:
        for command in commands:
            match command:
                case AddRequest(request):
                    self._add(request)
                case AbortRequest(request_id, index):
                    self._abort(request_id, index)
                case LoadAdapter(name):
                    self._events.put_nowait(AdapterFailed(name, "this engine loads no adapters"))
                case UnloadAdapter(name):
                    self._events.put_nowait(AdapterUnloaded(name))
                case Shutdown():
                    self._life.cancel()
        return []

    async def receive(self) -> EngineEvent | None:
        return await self._events.get()

    async def stop(self, timeout_s: float | None) -> None:
        tasks = [self._life, *self._choices.values(), *self._others]
        self._choices.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()

    async def exit_status(self) -> str:
        return "the connection to it was closed"

    # The life of the link

    async def _live(self) -> None:
        try:
            await self._server.wait(self._tell)
            info, self._abilities = await self._server.look()
            self._events.put_nowait(EngineReady(info))
            await self._watch(info)
        except ApiFailure as failure:
            self._events.put_nowait(EngineDown(str(failure)))
        except Exception as error:  # nobody awaits this task: an error must not pass unseen
            logger.exception("the link to the engine failed")
            self._events.put_nowait(EngineDown(f"the link to the engine failed: {error}"))
        finally:
            self._events.put_nowait(None)

    def _tell(self, stage: str) -> None:
        self._events.put_nowait(EngineLoading(Progress(stage)))

    async def _watch(self, info: EngineInfo) -> None:
        """Checks the server for ever. Raises ApiFailure when the server is gone."""
        num_looks = num_failures = 0
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._doubt.wait(), self._look_every_s)
                # A short pause limits the rate of checks after failures.
                await asyncio.sleep(min(self._look_every_s, 0.1))
            self._doubt.clear()
            try:
                await self._server.check()
                if num_looks % _LOOKS_PER_READING == 0:
                    self._stats = await self._server.stats(info)
                    self._wake()
            except ApiFailure:
                num_failures += 1
                if num_failures >= _NUM_LOOKS:
                    raise
                self._doubt.set()  # the next check is soon
            else:
                num_failures = 0
                num_looks += 1
                self._events.put_nowait(Heartbeat(0.0))

    # Choices

    def _add(self, request: EngineRequest) -> None:
        refusal = find_refusal(request, self._abilities)
        request = drop_optional_budget(request, self._abilities)
        for index in range(request.n):
            if refusal is not None:
                reason = FinishReason.REFUSED
                self._give(
                    make_final_output(
                        request.request_id,
                        index,
                        reason,
                        error=refusal.message,
                        param=refusal.param,
                    )
                )
            else:
                task = asyncio.create_task(
                    self._run(RemoteChoice(request, index, self._vocab_size))
                )
                self._choices[request.request_id, index] = task
                task.set_name(f"choice {request.request_id} {index}")

    def _abort(self, request_id: str, index: int | None) -> None:
        for key in [
            key for key in self._choices if key[0] == request_id and index in (None, key[1])
        ]:
            self._choices.pop(key).cancel()
            self._give(make_final_output(*key, FinishReason.ABORT))
            if not self._aborted:
                asyncio.get_running_loop().call_soon(self._send_aborts)
            self._aborted.append(f"{ID_PREFIX}{key[0]}-{key[1]}")

    def _send_aborts(self) -> None:
        names, self._aborted = self._aborted, []
        task = asyncio.create_task(self._ask_to_abort(names))
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def _ask_to_abort(self, names: list[str]) -> None:
        with suppress(ApiFailure):  # their connections are closed anyway
            await self._client.ask("POST", ABORT, msgspec.json.encode({"request_ids": names}))

    async def _run(self, choice: RemoteChoice) -> None:
        key = choice.request.request_id, choice.index
        try:
            final = await self._answer(choice)
        except ApiFailure as failure:
            final = self._make_failed_output(choice, failure)
        except (AnswerError, msgspec.DecodeError) as error:
            final = make_final_output(*key, FinishReason.ERROR, error=f"vLLM failed: {error}")
        # Any fault of one request must not leave its reader waiting.
        except Exception as error:
            logger.exception("a choice at the remote engine failed")
            final = make_final_output(*key, FinishReason.ERROR, error=f"the answer failed: {error}")
        if self._choices.pop(key, None) is not None:
            self._give(final)

    async def _answer(self, choice: RemoteChoice) -> StepOutput:
        """Returns the final output; tries again if the connection broke before the answer began.

        Servers close connections that were idle for a few seconds, perhaps just when one is used
        again.
        """
        answer = self._ask if choice.is_whole else self._stream
        try:
            return await answer(choice)
        except ApiFailure as failure:
            if failure.http_status or choice.has_begun:
                raise
        return await answer(choice)

    async def _stream(self, choice: RemoteChoice) -> StepOutput:
        async with self._client.events(GENERATE, choice.body()) as events:
            self._give(make_confirmation(choice.request.request_id, choice.index))
            async for data in events:
                for output in choice.read(data):
                    self._give(output)
        return choice.finish()

    async def _ask(self, choice: RemoteChoice) -> StepOutput:
        answer = await self._client.ask("POST", GENERATE, choice.body())
        if answer.status != _OK:
            raise read_failure(answer)
        choice.read(answer.body)
        return choice.finish()

    def _make_failed_output(self, choice: RemoteChoice, failure: ApiFailure) -> StepOutput:
        if failure.http_status in _REFUSED:
            reason = FinishReason.REFUSED
        elif failure.http_status in _OVERLOADED:
            reason = FinishReason.OVERLOADED
        else:
            reason = FinishReason.ERROR
            self._doubt.set()
        return make_final_output(
            choice.request.request_id, choice.index, reason, error=f"vLLM says {failure}"
        )

    # Events

    def _give(self, output: StepOutput) -> None:
        if not self._outputs:
            self._wake()
        self._outputs.append(output)

    def _wake(self) -> None:
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Emits one event for all outputs of a turn of the event loop."""
        outputs, self._outputs = self._outputs, []
        self._events.put_nowait(StepResult(outputs, self._stats))
