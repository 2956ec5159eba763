"""The events of a streamed response, as OpenAI defines them (`ResponseStreamEvent`)."""

import msgspec

from ouzel.responses.event_base import ItemEvent, ResponseEvent
from ouzel.responses.hosted.citations import Annotation
from ouzel.responses.hosted.items import EVENTS as HOSTED_EVENTS
from ouzel.responses.output_items import OutputItem, OutputText, ReasoningText, SummaryText
from ouzel.responses.response_object import ResponseObject


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


class ContentPartAdded(ItemEvent, frozen=True, kw_only=True, tag="response.content_part.added"):
    content_index: int = 0
    part: OutputText | ReasoningText


class ContentPartDone(ItemEvent, frozen=True, kw_only=True, tag="response.content_part.done"):
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


class OutputTextDelta(ItemEvent, frozen=True, kw_only=True, tag="response.output_text.delta"):
    content_index: int = 0
    delta: str
    logprobs: list[DeltaLogprob]


class OutputTextDone(ItemEvent, frozen=True, kw_only=True, tag="response.output_text.done"):
    content_index: int = 0
    text: str
    logprobs: list[DeltaLogprob]


class AnnotationAdded(
    ItemEvent, frozen=True, kw_only=True, tag="response.output_text.annotation.added"
):
    content_index: int = 0
    annotation_index: int
    annotation: Annotation


class ReasoningTextDelta(ItemEvent, frozen=True, kw_only=True, tag="response.reasoning_text.delta"):
    content_index: int = 0
    delta: str


class ReasoningTextDone(ItemEvent, frozen=True, kw_only=True, tag="response.reasoning_text.done"):
    content_index: int = 0
    text: str


class SummaryPartAdded(
    ItemEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_part.added"
):
    summary_index: int = 0
    part: SummaryText


class SummaryPartDone(
    ItemEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_part.done"
):
    summary_index: int = 0
    part: SummaryText


class SummaryTextDelta(
    ItemEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_text.delta"
):
    summary_index: int = 0
    delta: str


class SummaryTextDone(
    ItemEvent, frozen=True, kw_only=True, tag="response.reasoning_summary_text.done"
):
    summary_index: int = 0
    text: str


class ArgumentsDelta(
    ItemEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"
):
    call_id: str  # OpenAI sends no call_id here; clients of OpenVINO Model Server read it
    delta: str


class ArgumentsDone(
    ItemEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.done"
):
    call_id: str
    arguments: str


class CustomInputDelta(
    ItemEvent, frozen=True, kw_only=True, tag="response.custom_tool_call_input.delta"
):
    delta: str


class CustomInputDone(
    ItemEvent, frozen=True, kw_only=True, tag="response.custom_tool_call_input.done"
):
    input: str


EVENTS: tuple[type[ResponseEvent], ...] = (
    ResponseCreated,
    ResponseQueued,
    ResponseInProgress,
    OutputItemAdded,
    ContentPartAdded,
    OutputTextDelta,
    AnnotationAdded,
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
    *HOSTED_EVENTS,
    OutputItemDone,
    ResponseCompleted,
    ResponseIncomplete,
    ResponseFailed,
)
