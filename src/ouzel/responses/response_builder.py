"""Converts the events of a generation to the events of a response.

    created, (queued,) in_progress, (item added, its parts and deltas, item done)*,
    completed | incomplete | failed

1.  No other module makes events of a response.
2.  An answer without streaming is the response of the last event, so it equals the stream. A stored
    response has the same events.
3.  One item is open at a time. It is closed before the next item begins and before the response
    ends, also when the response fails or is cancelled.
4.  Several choices follow one another in the output.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
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
from ouzel.responses.events import (
    OutputItemAdded,
    OutputItemDone,
    ResponseCompleted,
    ResponseCreated,
    ResponseEvent,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    ResponseQueued,
)
from ouzel.responses.items.compaction_item import CompactionItem
from ouzel.responses.open_items import (
    OpenCall,
    OpenItem,
    OpenMessage,
    OpenReasoning,
    Place,
    ReasoningForm,
    reopen_item,
)
from ouzel.responses.output_items import ItemStatus, OutputItem, new_id
from ouzel.responses.response_object import (
    IncompleteDetails,
    LimitReason,
    ResponseError,
    ResponseObject,
    response_usage,
)
from ouzel.types.step_output import FinishReason, PositionLogprobs
from ouzel.wire.logprobs import ContentLogprob
from ouzel.wire.offered_tools import NO_TOOLS, ToolNames

Logprobs = Callable[[Sequence[PositionLogprobs]], list[ContentLogprob]]


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
        num_events: int = 0,
    ) -> None:
        """`logprobs` converts log probabilities; None if the response shows none.

        `compaction` becomes the first output item. `num_events` is the number of events that the
        response already has.
        """
        self.response = response
        self._logprobs = logprobs
        self._reasoning_form = reasoning_form
        self._limit_reason = limit_reason
        self._tool_names = tool_names
        self._numbers = itertools.count(num_events)
        self._items: list[OutputItem] = []  # finished items
        self._compaction = compaction
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
            replace(response, output=[]),
            logprobs=None,
            reasoning_form=ReasoningForm(),
            num_events=num_events,
        )
        # The token ids of an item that was still open are unknown.
        builder._token_ids = response.token_ids
        for index, item in enumerate(response.output):
            if not isinstance(item, CompactionItem) and item.status == "in_progress":
                builder._open = reopen_item(item, index, builder._numbers)
            else:
                builder._items.append(item)
        return builder

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
        if self._compaction is not None:
            self._items.append(self._compaction)
            yield OutputItemAdded(next(self._numbers), output_index=0, item=self._compaction)
            yield OutputItemDone(next(self._numbers), output_index=0, item=self._compaction)

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
                if self._open is None or (self._pending and isinstance(self._open, OpenMessage)):
                    yield from self._add(ContentDelta(""))
                yield from self._close("incomplete" if is_cut else "completed")
            case unreachable:
                assert_never(unreachable)

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
                    item = OpenMessage(self._new_place("msg"))
                    yield from self._begin_item(item)
                yield from item.add(text, self._due_logprobs())
            case ReasoningDelta(text):
                if not isinstance(item, OpenReasoning):
                    yield from self._close("completed")
                    item = OpenReasoning(self._new_place("rs"), self._reasoning_form)
                    yield from self._begin_item(item)
                self._pending.clear()  # like OpenAI, only messages show logprobs
                yield from item.add(text)
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

    def _goes_on(self, delta: Delta) -> bool:
        """Tells whether the delta belongs to the open item."""
        match delta:
            case ContentDelta():
                return isinstance(self._open, OpenMessage)
            case ReasoningDelta():
                return isinstance(self._open, OpenReasoning)
            case ToolCallDelta(index):
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
