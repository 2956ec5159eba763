"""Folds the events of a request into a unary answer, equal to the sum of the chunks of a stream."""

from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Finished,
    Output,
    PromptScored,
    ReasoningDelta,
    ToolCallDelta,
)
from ouzel.types.step_output import FinishReason, PositionLogprobs


class ToolFunction(msgspec.Struct):
    arguments: str
    name: str | UnsetType = UNSET


class CustomInput(msgspec.Struct):
    input: str
    name: str | UnsetType = UNSET


class ToolCall(msgspec.Struct):
    """A tool call of an answer. `type` tells whether it has `function` or `custom`."""

    id: str
    function: ToolFunction | UnsetType = UNSET
    type: Literal["function", "custom"] = "function"
    custom: CustomInput | UnsetType = UNSET


class FoldedChoice(msgspec.Struct, frozen=True):
    index: int
    content: str
    reasoning: str
    tool_calls: list[ToolCall]
    token_ids: list[int]
    logprobs: list[PositionLogprobs]
    finished: Finished


def fold(events: Sequence[Event]) -> list[FoldedChoice]:
    """Returns the choices, sorted by index. `events` are all events of one request."""
    outputs: dict[int, list[Output]] = {}
    finished: dict[int, Finished] = {}
    for event in events:
        match event:
            case Output(index):
                outputs.setdefault(index, []).append(event)
            case Finished(index):
                finished[index] = event
            case PromptScored():
                pass  # belongs to no choice
            case unreachable:
                assert_never(unreachable)
    return [_fold_choice(finished[index], outputs.get(index, [])) for index in sorted(finished)]


def prompt_logprobs_in(events: Sequence[Event]) -> list[PositionLogprobs] | None:
    """Returns the logprobs of all prompt tokens but the first, or None without scores."""
    return next((event.logprobs for event in events if isinstance(event, PromptScored)), None)


def _fold_choice(finished: Finished, outputs: list[Output]) -> FoldedChoice:
    deltas = [delta for output in outputs for delta in output.deltas]
    return FoldedChoice(
        index=finished.index,
        content="".join(delta.text for delta in deltas if isinstance(delta, ContentDelta)),
        reasoning="".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)),
        tool_calls=_fold_tool_calls(deltas),
        token_ids=[token_id for output in outputs for token_id in output.token_ids],
        logprobs=[position for output in outputs for position in output.logprobs],
        finished=finished,
    )


def _fold_tool_calls(deltas: Sequence[Delta]) -> list[ToolCall]:
    calls: dict[int, ToolCall] = {}
    for delta in deltas:
        if not isinstance(delta, ToolCallDelta):
            continue
        call = calls.setdefault(delta.index, _make_empty_call(delta))
        call.id = delta.id or call.id
        if isinstance(call.custom, CustomInput):
            call.custom.name = delta.name or call.custom.name
            call.custom.input += delta.arguments
        elif isinstance(call.function, ToolFunction):
            call.function.name = delta.name or call.function.name
            call.function.arguments += delta.arguments
    return [calls[index] for index in sorted(calls)]


def _make_empty_call(delta: ToolCallDelta) -> ToolCall:
    if delta.is_custom:
        return ToolCall("", type="custom", custom=CustomInput(""))
    return ToolCall("", ToolFunction(""))


def public_finish_reason(reason: FinishReason, *, called: bool) -> str:
    """Returns OpenAI's finish reason. `called` tells whether the choice has tool calls.

    The reasons `abort`, `error`, `refused` and `overloaded` are raised as exceptions before this
    call.
    """
    match reason:
        case FinishReason.STOP:
            return "tool_calls" if called else "stop"
        case FinishReason.LENGTH:
            return "length"
        case (
            FinishReason.ABORT | FinishReason.ERROR | FinishReason.REFUSED | FinishReason.OVERLOADED
        ):
            raise AssertionError(f"a choice that ended with {reason} has no answer")
        case unreachable:
            assert_never(unreachable)
