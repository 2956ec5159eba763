"""Converts the events of a generation to the events of a response.

    created, (queued,) in_progress, (item added, its parts and deltas, item done)*,
    completed | incomplete | failed

1.  No other module makes events of a response.
2.  An answer without streaming is the response of the last event, so it equals the stream. A stored
    response has the same events.
3.  One item that the model writes is open at a time. It is closed before the next item begins and
    before the response ends, also when the response fails or is cancelled.
4.  Several choices follow one another in the output.
5.  Calls of tools that this server runs (`hosted`) are collected while the model writes. Their
    items are added after its turn; several of them may run at once, and end in any order.
"""

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Finished,
    Output,
    PromptScored,
    ReasoningDelta,
    ToolCallDelta,
    Usage,
)
from ouzel.responses.event_base import Place, ResponseEvent
from ouzel.responses.events import (
    OutputItemAdded,
    OutputItemDone,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    ResponseQueued,
)
from ouzel.responses.hosted.citations import Source
from ouzel.responses.hosted.item_base import HostedItem
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import CallResult, ModelCall
from ouzel.responses.hosted.opened_tools import OpenedTools
from ouzel.responses.items.compaction_item import CompactionItem
from ouzel.responses.open_items import (
    OpenCall,
    OpenItem,
    OpenMessage,
    OpenReasoning,
    ReasoningForm,
    reopen_item,
)
from ouzel.responses.output_items import CallItem, ItemStatus, OutputItem, WrittenItem, new_id
from ouzel.responses.response_object import (
    IncompleteDetails,
    LimitReason,
    ResponseError,
    ResponseObject,
    response_usage,
)
from ouzel.types.step_output import FinishReason, PositionLogprobs
from ouzel.wire.logprobs import ContentLogprob
from ouzel.wire.offered_tools import NO_TOOLS, ClientName, ToolNames

Logprobs = Callable[[Sequence[PositionLogprobs]], list[ContentLogprob]]


@dataclass(slots=True)
class _WrittenCall:
    """A call of a hosted tool that the model is writing."""

    index: int  # among the calls of its turn
    name: ClientName
    texts: list[str] = field(default_factory=list)  # the arguments


class ResponseBuilder:
    """Builds one response; `response` is the current state, without output until the end."""

    def __init__(
        self,
        response: ResponseObject,
        *,
        logprobs: Logprobs | None,
        reasoning_form: ReasoningForm,
        limit_reason: LimitReason = "max_output_tokens",
        compaction: CompactionItem | None = None,
        tool_names: ToolNames = NO_TOOLS,
        hosted: OpenedTools | None = None,
        num_events: int = 0,
    ) -> None:
        """`logprobs` converts log probabilities; None if the response shows none.

        `compaction` becomes the first output item. `hosted` are the tools that this server runs.
        `num_events` is the number of events that the response already has.
        """
        self.response = response
        self._logprobs = logprobs
        self._reasoning_form = reasoning_form
        self._limit_reason = limit_reason
        self._tool_names = tool_names
        self._numbers = itertools.count(num_events)
        self._items: list[OutputItem] = []  # finished items, and running calls of hosted tools
        self._first_items: list[OutputItem] = [] if compaction is None else [compaction]
        self._hosted_names: Collection[ClientName] = ()
        self._sources: Mapping[int, Source] = {}
        if hosted is not None:
            self._first_items += hosted.first_items
            self._hosted_names, self._sources = hosted.names, hosted.sources
        self._calls: list[_WrittenCall] = []  # calls of hosted tools in this turn
        self._open: OpenItem | None = None
        self._pending: list[PositionLogprobs] = []  # logprobs of text that the parser holds back
        self._token_ids: list[int] | UnsetType = UNSET if response.prompt_token_ids is UNSET else []
        self._is_cut = False
        self._has_events = num_events > 0
        self.ends_after_item = False  # the client has steered: end after the open item
        self.is_steered = False  # the response has ended so: further events are ignored

    @classmethod
    def resume(cls, response: ResponseObject, num_events: int) -> "ResponseBuilder":
        """Makes a builder that can end a response which this or another server began.

        `num_events` is the number of events that the response already has.
        """
        builder = cls(
            response, logprobs=None, reasoning_form=ReasoningForm(), num_events=num_events
        )
        builder.restore(response)
        return builder

    def restore(self, response: ResponseObject) -> None:
        """Takes the state of a response that this or another server began."""
        self.response = replace(response, output=[], usage=None)
        # The token ids of an item that was still open are unknown.
        self._token_ids = response.token_ids
        for index, item in enumerate(response.output):
            if isinstance(item, WrittenItem) and item.status == "in_progress":
                self._open = reopen_item(item, index, self._numbers)
            else:
                self._items.append(item)

    @property
    def snapshot(self) -> ResponseObject:
        """Returns the response with all items, also the unfinished text of the open item."""
        opened = [] if self._open is None else [self._open.item("in_progress")]
        return replace(self.response, output=[*self._items, *opened])

    def queue(self) -> Iterator[ResponseEvent]:
        self.response = replace(self.response, status="queued")
        self._has_events = True
        yield ResponseCreated(next(self._numbers), response=self.response)
        yield ResponseQueued(next(self._numbers), response=self.response)

    def begin(self) -> Iterator[ResponseEvent]:
        self.response = replace(self.response, status="in_progress")
        if not self._has_events:
            self._has_events = True
            yield ResponseCreated(next(self._numbers), response=self.response)
        yield ResponseInProgress(next(self._numbers), response=self.response)
        for item in self._first_items:
            yield from self._add_whole(item)

    def advance(self, event: Event) -> Iterator[ResponseEvent]:
        match event:
            case PromptScored():
                return  # responses show no prompt logprobs
            case Output(_, deltas, token_ids, logprobs):
                self._pending += logprobs
                if self._token_ids is not UNSET:
                    self._token_ids += token_ids
                for delta in deltas:
                    self.is_steered = self.is_steered or (
                        self.ends_after_item and not self._goes_on(delta)
                    )
                    if self.is_steered:
                        return
                    yield from self._add(delta)
            case Finished() if self.is_steered:
                return
            case Finished(_, reason):
                is_cut = reason is FinishReason.LENGTH
                self._is_cut = self._is_cut or is_cut
                if is_cut:
                    self._calls.clear()  # the last call may lack its end
                is_empty = self._open is None and not self._calls
                if is_empty or (self._pending and isinstance(self._open, OpenMessage)):
                    yield from self._add(ContentDelta(""))
                yield from self._close("incomplete" if is_cut else "completed")
            case unreachable:
                assert_never(unreachable)

    def take_calls(self) -> list[ModelCall]:
        """Returns the calls of hosted tools that the model has written in its last turn."""
        calls, self._calls = self._calls, []
        return [ModelCall(call.name, "".join(call.texts)) for call in calls]

    @property
    def items(self) -> Sequence[OutputItem]:
        return self._items

    @property
    def running(self) -> list[AnyHostedItem]:
        """Returns the items of hosted tools whose calls have not ended."""
        return [item for item in self._items if isinstance(item, HostedItem) and item.is_running]

    @property
    def waits_for_client(self) -> bool:
        """Tells whether the client must act before the model can go on: call, or approve a call."""
        return any(
            item.waits_for_client if isinstance(item, HostedItem) else isinstance(item, CallItem)
            for item in self._items
        )

    def go_on(self) -> Iterator[ResponseEvent]:
        """Closes an item that a stopped server has left open, before the response goes on."""
        yield from self._close("incomplete")

    def add_hosted(self, item: AnyHostedItem) -> Iterator[ResponseEvent]:
        """Adds the item of a call that runs from now on, or a whole item."""
        if not item.is_running:
            yield from self._add_whole(item)
            return
        place = Place(item.id, len(self._items), self._numbers)
        self._items.append(item)
        yield OutputItemAdded(next(self._numbers), output_index=place.output_index, item=item)
        yield from item.opening_events(place)

    def end_hosted(self, result: CallResult) -> Iterator[ResponseEvent]:
        """Replaces the running item of a call by the ended item, and adds the items after it."""
        item = result.item
        index = next(index for index, each in enumerate(self._items) if each.id == item.id)
        self._items[index] = item
        yield from item.closing_events(Place(item.id, index, self._numbers))
        yield OutputItemDone(next(self._numbers), output_index=index, item=item)
        for further in result.further:
            yield from self._add_whole(further)

    def cut(self) -> None:
        """Notes that no tokens are left for a further turn."""
        self._is_cut = True

    def complete(self, usage: Usage) -> Iterator[ResponseEvent]:
        """Ends the response after its last choice has finished."""
        self.response = self._ended(
            status="incomplete" if self._is_cut else "completed",
            completed_at=self.response.completed_at if self._is_cut else int(time.time()),
            incomplete_details=IncompleteDetails(self._limit_reason) if self._is_cut else None,
            usage=response_usage(usage),
        )
        yield self._end_event()

    def steer(self, usage: Usage) -> Iterator[ResponseEvent]:
        """Ends the response between two items, because another response continues from there."""
        yield from self._close("completed")
        details = IncompleteDetails("steered")
        self.response = self._ended(
            status="incomplete", incomplete_details=details, usage=response_usage(usage)
        )
        yield self._end_event()

    def fail(self, error: ResponseError) -> Iterator[ResponseEvent]:
        yield from self._break_off()
        self.response = self._ended(status="failed", error=error)
        yield self._end_event()

    def cancel(self) -> Iterator[ResponseEvent]:
        yield from self._break_off()
        self.response = self._ended(status="cancelled")
        yield self._end_event()

    def _add(self, delta: Delta) -> Iterator[ResponseEvent]:
        item = self._open
        match delta:
            case ContentDelta(text):
                if not isinstance(item, OpenMessage):
                    yield from self._close("completed")
                    item = OpenMessage(self._new_place("msg"), sources=self._sources)
                    yield from self._begin_item(item)
                yield from item.add(text, self._due_logprobs())
            case ReasoningDelta(text):
                if not isinstance(item, OpenReasoning):
                    yield from self._close("completed")
                    item = OpenReasoning(self._new_place("rs"), self._reasoning_form)
                    yield from self._begin_item(item)
                self._pending.clear()  # like OpenAI, only messages show logprobs
                yield from item.add(text)
            case ToolCallDelta(index) if self._is_hosted(delta):
                yield from self._close("completed")
                self._pending.clear()
                self._add_to_call(delta)
            case ToolCallDelta(index):
                if not isinstance(item, OpenCall) or item.index != index:
                    yield from self._close("completed")
                    item = OpenCall.begin(
                        self._new_place("ctc" if delta.is_custom else "fc"), delta, self._tool_names
                    )
                    yield from self._begin_item(item)
                self._pending.clear()
                if delta.arguments:
                    yield from item.add(delta.arguments)
            case unreachable:
                assert_never(unreachable)

    def _break_off(self) -> Iterator[ResponseEvent]:
        if not self._has_events:
            yield from self.begin()
        yield from self._close("incomplete")
        for item in self.running:
            yield from self.end_hosted(CallResult(item.fail("The response ended before the call.")))

    def _is_hosted(self, delta: ToolCallDelta) -> bool:
        if delta.name is not None:
            return self._tool_names.for_client(delta.name) in self._hosted_names
        return bool(self._calls) and self._calls[-1].index == delta.index

    def _add_to_call(self, delta: ToolCallDelta) -> None:
        if delta.name is not None:
            name = self._tool_names.for_client(delta.name)
            self._calls.append(_WrittenCall(delta.index, name))
        self._calls[-1].texts.append(delta.arguments)

    def _add_whole(self, item: OutputItem) -> Iterator[ResponseEvent]:
        index = len(self._items)
        self._items.append(item)
        yield OutputItemAdded(next(self._numbers), output_index=index, item=item)
        if isinstance(item, HostedItem):
            place = Place(item.id, index, self._numbers)
            yield from item.opening_events(place)
            yield from item.closing_events(place)
        yield OutputItemDone(next(self._numbers), output_index=index, item=item)

    def _goes_on(self, delta: Delta) -> bool:
        """Tells whether the delta belongs to the open item."""
        match delta:
            case ContentDelta():
                return isinstance(self._open, OpenMessage)
            case ReasoningDelta():
                return isinstance(self._open, OpenReasoning)
            case ToolCallDelta(index):
                if self._is_hosted(delta):
                    return delta.name is None
                return isinstance(self._open, OpenCall) and self._open.index == index
            case unreachable:
                assert_never(unreachable)

    def _new_place(self, prefix: str) -> Place:
        return Place(new_id(prefix), len(self._items), self._numbers)

    def _begin_item(self, item: OpenItem) -> Iterator[ResponseEvent]:
        self._open = item
        yield from item.open()

    def _close(self, status: ItemStatus) -> Iterator[ResponseEvent]:
        """Closes the open item, if there is one, with its last events."""
        item, self._open = self._open, None
        if item is None:
            return
        yield from item.close()
        done = item.item(status)
        self._items.append(done)
        yield OutputItemDone(next(self._numbers), output_index=item.place.output_index, item=done)

    def _ended(self, **changes: object) -> ResponseObject:
        """Returns the response with its final output; the open item must be closed before."""
        return replace(self.response, output=self._items, token_ids=self._token_ids, **changes)

    def _end_event(self) -> ResponseEvent:
        return end_event(next(self._numbers), self.response)

    def _due_logprobs(self) -> list[ContentLogprob]:
        positions, self._pending = self._pending, []
        return [] if self._logprobs is None else self._logprobs(positions)


def end_event(number: int, response: ResponseObject) -> ResponseEvent:
    """Makes the last event of a response.

    OpenAI has no event for `cancelled`: the stream of such a response ends with `incomplete`.
    """
    match response.status:
        case "completed":
            return ResponseCompleted(number, response=response)
        case "failed":
            return ResponseFailed(number, response=response)
        case _:
            return ResponseIncomplete(number, response=response)
