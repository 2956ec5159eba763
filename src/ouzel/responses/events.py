"""The events of a streamed response, as OpenAI defines them (`ResponseStreamEvent`)."""

import msgspec

from ouzel.responses.output_items import OutputItem, OutputText, ReasoningText, SummaryText
from ouzel.responses.response_object import ResponseObject


class ResponseEvent(msgspec.Struct, frozen=True, tag_field="type"):
    sequence_number: int  # counts from 0, without gaps


class ResponseCreated(ResponseEvent, frozen=True, kw_only=True, tag="response.created"):
    response: ResponseObject


class ResponseQueued(ResponseEvent, frozen=True, kw_only=True, tag="response.queued"):
    response: ResponseObject


class ResponseInProgress(ResponseEvent, frozen=True, kw_only=True, tag="response.in_progress"):
    response: ResponseObject


class ResponseCompleted(ResponseEvent, frozen=True, kw_only=True, tag="response.completed"):
    response: ResponseObject


class ResponseIncomplete(ResponseEvent, frozen=True, kw_only=True, tag="response.incomplete"):
    response: ResponseObject


class ResponseFailed(ResponseEvent, frozen=True, kw_only=True, tag="response.failed"):
    response: ResponseObject


class OutputItemAdded(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.added"):
    output_index: int
    item: OutputItem


class OutputItemDone(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.done"):
    output_index: int
    item: OutputItem


class _OfItem(ResponseEvent, frozen=True):
    item_id: str
    output_index: int


class ContentPartAdded(_OfItem, frozen=True, kw_only=True, tag="response.content_part.added"):
    content_index: int = 0
    part: OutputText | ReasoningText


class ContentPartDone(_OfItem, frozen=True, kw_only=True, tag="response.content_part.done"):
    content_index: int = 0
    part: OutputText | ReasoningText


class TopDeltaLogprob(msgspec.Struct, frozen=True):
    token: str
    logprob: float


class DeltaLogprob(msgspec.Struct, frozen=True):
    """The log probability of one token in an event; unlike the item, without `bytes`."""

    token: str
    logprob: float
    top_logprobs: list[TopDeltaLogprob]


class OutputTextDelta(_OfItem, frozen=True, kw_only=True, tag="response.output_text.delta"):
    content_index: int = 0
    delta: str
    logprobs: list[DeltaLogprob]


class OutputTextDone(_OfItem, frozen=True, kw_only=True, tag="response.output_text.done"):
    content_index: int = 0
    text: str
    logprobs: list[DeltaLogprob]


class ReasoningTextDelta(_OfItem, frozen=True, kw_only=True, tag="response.reasoning_text.delta"):
    content_index: int = 0
    delta: str


class ReasoningTextDone(_OfItem, frozen=True, kw_only=True, tag="response.reasoning_text.done"):
    content_index: int = 0
    text: str


class SummaryPartAdded(
    _OfItem, frozen=True, kw_only=True, tag="response.reasoning_summary_part.added"
):
    summary_index: int = 0
    part: SummaryText


class SummaryPartDone(
    _OfItem, frozen=True, kw_only=True, tag="response.reasoning_summary_part.done"
):
    summary_index: int = 0
    part: SummaryText


class SummaryTextDelta(
    _OfItem, frozen=True, kw_only=True, tag="response.reasoning_summary_text.delta"
):
    summary_index: int = 0
    delta: str


class SummaryTextDone(
    _OfItem, frozen=True, kw_only=True, tag="response.reasoning_summary_text.done"
):
    summary_index: int = 0
    text: str


class ArgumentsDelta(
    _OfItem, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"
):
    call_id: str  # OpenAI sends no call_id here; clients of OpenVINO Model Server read it
    delta: str


class ArgumentsDone(
    _OfItem, frozen=True, kw_only=True, tag="response.function_call_arguments.done"
):
    call_id: str
    arguments: str


class CustomInputDelta(
    _OfItem, frozen=True, kw_only=True, tag="response.custom_tool_call_input.delta"
):
    delta: str


class CustomInputDone(
    _OfItem, frozen=True, kw_only=True, tag="response.custom_tool_call_input.done"
):
    input: str


EVENTS: tuple[type[ResponseEvent], ...] = (
    ResponseCreated,
    ResponseQueued,
    ResponseInProgress,
    OutputItemAdded,
    ContentPartAdded,
    OutputTextDelta,
    OutputTextDone,
    ReasoningTextDelta,
    ReasoningTextDone,
    SummaryPartAdded,
    SummaryTextDelta,
    SummaryTextDone,
    SummaryPartDone,
    ContentPartDone,
    ArgumentsDelta,
    ArgumentsDone,
    CustomInputDelta,
    CustomInputDone,
    OutputItemDone,
    ResponseCompleted,
    ResponseIncomplete,
    ResponseFailed,
)
