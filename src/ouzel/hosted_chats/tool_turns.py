"""Lets a model take turns, and runs the calls of hosted tools between them.

    events:  deltas of a turn ─> CallEnded for each call ─> deltas of the next turn ─> … ─> Finished

1.  Only the last turn has a `Finished`. It follows a turn without calls of hosted tools, a turn
    that was cut, or a turn after which the client must act.
2.  The calls of a turn run at the same time.
3.  Closing `events()` aborts the turn and cancels its calls.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec
from msgspec import UnsetType

from ouzel.errors import ContextLengthExceeded
from ouzel.generation import (
    Event,
    Finished,
    Generation,
    GenerationRequest,
    ServedModel,
    SuccessiveGenerations,
    Usage,
)
from ouzel.hosted_chats.called_turn import CalledTurn, EndedCall
from ouzel.hosted_chats.events import CallEnded, Paused, TurnEvent
from ouzel.observability import Metrics
from ouzel.responses.hosted.finished_call import finish_call
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import ModelCall
from ouzel.responses.hosted.opened_tools import OpenedTools
from ouzel.types.step_output import FinishReason
from ouzel.wire.fold import FoldedChoice, fold
from ouzel.wire.offered_tools import ClientName, ToolNames
from ouzel.worker_threads import PreparationThreads

logger = logging.getLogger(__name__)


class MakeRequest(Protocol):
    """Renders the prompt of a later turn; runs in a thread."""

    def __call__(
        self, turns: Sequence[CalledTurn], *, num_used_tokens: int, may_call: bool
    ) -> GenerationRequest | None:
        """Returns the request of the turn after `turns`; None if no tokens are left for it.

        Raises ContextLengthExceeded if the prompt does not fit.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """The differences between the APIs."""

    make_request: MakeRequest
    names: ToolNames
    # Calls run although the client must run others of the same turn. False: the model has to
    # repeat them, because the client would lose their results.
    runs_beside_clients: bool
    pauses: bool  # the answer ends when no calls are left; False: the model answers without calls
    max_uses: Mapping[ClientName, int] = field(default_factory=dict)  # further limits of calls


class ToolTurns:
    """Has the `events` and the usage of all turns of one answer; `events()` is iterated once."""

    def __init__(
        self,
        first: Generation,
        tools: OpenedTools,
        rules: TurnRules,
        *,
        model: ServedModel,
        metrics: Metrics,
        threads: PreparationThreads,
        key_id: str | None,
        num_bytes: int,
    ) -> None:
        """`num_bytes` is the size of the request's body."""
        self.generations = SuccessiveGenerations(first, runs_first=True)
        self._first = first
        self._tools = tools
        self._rules = rules
        self._model = model
        self._metrics = metrics
        self._threads = threads
        self._key_id = key_id
        self._num_bytes = num_bytes
        self._uses_left = dict(rules.max_uses)
        self._turns: list[CalledTurn] = []

    def usage(self) -> Usage:
        return self.generations.usage()

    def is_hosted(self, model_name: str) -> bool:
        """Tells whether this server runs the calls of a function, given the model's name of it."""
        return self._rules.names.for_client(model_name) in self._tools.names

    async def events(self) -> AsyncGenerator[list[TurnEvent], None]:
        turn: Generation | None = self._first
        while turn is not None:
            may_call = self._tools.num_left > 0  # not every engine heeds that it may not
            written: list[Event] = []
            async with aclosing(turn.events()) as steps:
                async for events in steps:
                    written += events
                    shown = [event for event in events if not isinstance(event, Finished)]
                    if shown:
                        yield list(shown)
            [choice] = fold(written)
            last, calls = choice.finished, self._list_calls(choice)
            waits_for_client = len(choice.tool_calls) > len(calls)
            if waits_for_client and not self._rules.runs_beside_clients:
                calls = []
            if not calls or not may_call:
                yield [last]
                return
            async with aclosing(self._run(calls)) as ending:
                async for ended in ending:
                    yield [ended]
            self._turns.append(CalledTurn(choice.content, choice.reasoning, calls_in(calls)))
            if waits_for_client:
                yield [last]
                return
            if self._rules.pauses and self._tools.num_left == 0:
                yield [Paused(), last]
                return
            turn = await self._make_turn()
            if turn is None:
                yield [msgspec.structs.replace(last, reason=FinishReason.LENGTH)]

    def _list_calls(self, choice: FoldedChoice) -> "list[_Call]":
        """Returns the calls to run; none of a turn that was cut, whose last call lacks its end."""
        if choice.finished.reason is FinishReason.LENGTH:
            return []
        calls: list[_Call] = []
        for call in choice.tool_calls:
            function = call.function
            if isinstance(function, UnsetType) or isinstance(function.name, UnsetType):
                continue
            if self.is_hosted(function.name):
                calls.append(_Call(call.id, function.name, function.arguments))
        return calls

    async def _run(self, calls: "Sequence[_Call]") -> AsyncGenerator[CallEnded, None]:
        """Yields the ends of the calls, in the order in which they end."""
        running: dict[asyncio.Task[None], _Call] = {}
        for call in calls:
            self._begin(call)
            if not call.is_running:
                yield call.end()
        try:
            for call in calls:
                if call.is_running:
                    running[asyncio.create_task(self._finish(call))] = call
            while running:
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    call = running.pop(task)
                    task.result()  # raises an error of ours
                    yield call.end()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _begin(self, call: "_Call") -> None:
        model_call = ModelCall(self._rules.names.for_client(call.model_name), call.arguments)
        uses_left = self._uses_left.get(model_call.name)
        items = [] if uses_left == 0 else self._tools.begin([model_call])
        if uses_left:
            self._uses_left[model_call.name] = uses_left - 1
        call.is_over_limit = not items
        call.item = items[0] if items else self._tools.refuse(model_call)

    async def _finish(self, call: "_Call") -> None:
        assert call.item is not None
        call.item = (await finish_call(call.item, self._tools, self._metrics)).item

    async def _make_turn(self) -> Generation | None:
        make = partial(
            self._rules.make_request,
            tuple(self._turns),
            num_used_tokens=self.usage().completion_tokens,
            may_call=self._tools.num_left > 0,
        )
        num_bytes = self._num_bytes + sum(turn.num_chars for turn in self._turns)
        try:
            request = await self._threads.run(make, num_bytes)
        except ContextLengthExceeded as error:
            logger.info("the answer ends after calls of tools: %s", error)
            return None
        if request is None:
            return None
        turn = Generation(request, self._model, self._metrics, key_id=self._key_id)
        self.generations.add(turn)
        return turn


@dataclass(slots=True)
class _Call:
    call_id: str
    model_name: str
    arguments: str
    item: AnyHostedItem | None = None  # set when the call begins
    is_over_limit: bool = False

    @property
    def is_running(self) -> bool:
        return self.item is not None and self.item.is_running

    def end(self) -> CallEnded:
        assert self.item is not None
        return CallEnded(self.call_id, self.item, self.is_over_limit)


def calls_in(calls: Sequence[_Call]) -> list[EndedCall]:
    return [
        EndedCall(call.call_id, call.model_name, call.arguments, call.item)
        for call in calls
        if call.item is not None
    ]
