"""Writes the results of lines, in the form of the API of their batch."""

import secrets
from typing import assert_never

import msgspec

from ouzel.batches.line_app import LineAnswer
from ouzel.store.batches.records import (
    Dialect,
    Line,
    LineEnd,
    LineResult,
    LineUsage,
    StoredResult,
)

_FIRST_FAILURE = 400
_MESSAGES = {
    LineEnd.EXPIRED: (
        "batch_expired",
        "This request could not be executed before the completion window expired.",
    ),
    LineEnd.CANCELLED: (
        "batch_cancelled",
        "This request was not executed: the batch was cancelled.",
    ),
}


class OutputResponse(msgspec.Struct, frozen=True):
    status_code: int
    request_id: str
    body: msgspec.Raw


class OutputError(msgspec.Struct, frozen=True):
    code: str
    message: str


class OutputLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an output file or of an error file."""

    id: str
    custom_id: str
    response: OutputResponse | None
    error: OutputError | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    """The counts of tokens in an answer, under the names of all endpoints."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None
    cache_read_input_tokens: int | None = None


class _Answer(msgspec.Struct):
    usage: _Usage | None = None


_decode_answer = msgspec.json.Decoder(_Answer).decode


def make_result(dialect: Dialect, line: Line, answer: LineAnswer) -> LineResult:
    """Returns the result of a line that was answered, with any status."""
    is_error = answer.status >= _FIRST_FAILURE
    result: object
    match dialect:
        case "openai":
            response = OutputResponse(answer.status, answer.request_id, msgspec.Raw(answer.body))
            result = OutputLine(id=_new_id(), custom_id=line.custom_id, response=response)
        case "anthropic":
            field = "error" if is_error else "message"
            own = {
                "type": "errored" if is_error else "succeeded",
                field: msgspec.Raw(answer.body),
            }
            result = {"custom_id": line.custom_id, "result": own}
        case unreachable:
            assert_never(unreachable)
    return LineResult(
        position=line.position,
        end=LineEnd.ERRORED if is_error else LineEnd.SUCCEEDED,
        result=msgspec.json.encode(result),
        usage=LineUsage() if is_error else _read_usage(answer.body),
    )


def write_openai_line(stored: StoredResult) -> bytes:
    """Returns the text of a line in an output or error file, with the line break."""
    if stored.result is not None:
        return stored.result + b"\n"
    code, message = _MESSAGES[stored.end]
    line = OutputLine(
        id=_new_id(),
        custom_id=stored.custom_id,
        response=None,
        error=OutputError(code, message),
    )
    return msgspec.json.encode(line) + b"\n"


def write_anthropic_line(stored: StoredResult) -> bytes:
    """Returns the text of a line of Anthropic's results, with the line break."""
    if stored.result is not None:
        return stored.result + b"\n"
    kind = "expired" if stored.end is LineEnd.EXPIRED else "canceled"
    return msgspec.json.encode({"custom_id": stored.custom_id, "result": {"type": kind}}) + b"\n"


def _new_id() -> str:
    return f"batch_req_{secrets.token_hex(16)}"


def _read_usage(body: bytes) -> LineUsage:
    try:
        usage = _decode_answer(body).usage or _Usage()
    except msgspec.MsgspecError:  # no endpoint answers so; a count must not lose the result
        return LineUsage()
    details_in = usage.prompt_tokens_details or usage.input_tokens_details or _Details()
    details_out = usage.completion_tokens_details or usage.output_tokens_details or _Details()
    return LineUsage(
        input_tokens=usage.prompt_tokens or usage.input_tokens,
        cached_tokens=details_in.cached_tokens or usage.cache_read_input_tokens or 0,
        output_tokens=usage.completion_tokens or usage.output_tokens,
        reasoning_tokens=details_out.reasoning_tokens or 0,
    )
