"""Chunks and events of a stream, read for what a benchmark needs of them: several thousand in a second."""

from collections.abc import Sequence
from typing import Any  # JSON

import msgspec


class Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int
    output_tokens: int
    cached_tokens: int  # of the input, which the server had computed before


class Piece(msgspec.Struct, frozen=True, gc=False):
    """`has_output` is true of text, reasoning and tool calls; `answer` is what the next turn says was answered."""

    answer: str = ""
    reasoning: str = ""
    has_output: bool = False
    ends_answer: bool = False
    usage: Usage | None = None
    error: str = ""


NOTHING = Piece()


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: _Details | None = None


class _Thought(msgspec.Struct):
    text: str = ""


class _Part(msgspec.Struct):
    text: str = ""
    thinking: list[_Thought] = []


class _Delta(msgspec.Struct):
    content: str | list[msgspec.Raw] | None = None  # Mistral's models that think have parts
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _ChatChoice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _CompletionChoice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None


class _ChatChunk(msgspec.Struct):
    choices: list[_ChatChoice] | None = None
    usage: _Usage | None = None
    error: Any = None
    message: Any = None  # of an error that is the whole chunk


class _CompletionChunk(msgspec.Struct):
    choices: list[_CompletionChoice] | None = None
    usage: _Usage | None = None
    error: Any = None
    message: Any = None  # of an error that is the whole chunk


class _ResponseUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _Details | None = None


class _Response(msgspec.Struct):
    usage: _ResponseUsage | None = None
    error: Any = None


class _ResponseEvent(msgspec.Struct):
    type: str = ""
    delta: Any = None
    response: _Response | None = None
    message: str = ""  # of an error
    error: Any = None


_chat_decoder = msgspec.json.Decoder(_ChatChunk)
_part_decoder = msgspec.json.Decoder(_Part)
_completion_decoder = msgspec.json.Decoder(_CompletionChunk)
_response_decoder = msgspec.json.Decoder(_ResponseEvent)


def read_chat_chunk(content: bytes) -> Piece:
    """Raises one of UNREADABLE."""
    chunk = _chat_decoder.decode(content)
    usage = _usage_of(chunk.usage)
    if not chunk.choices:
        return Piece(usage=usage, error=error_text(chunk.error or chunk.message))
    choice = chunk.choices[0]
    delta = choice.delta or _Delta()
    answer, reasoning = delta.content or "", delta.reasoning_content or delta.reasoning or ""
    has_output = bool(answer or reasoning or delta.tool_calls)
    if isinstance(answer, list):
        answer, reasoning = _texts_of(answer)
    return Piece(
        answer, reasoning, has_output, bool(choice.finish_reason), usage, error_text(chunk.error)
    )


def read_completion_chunk(content: bytes) -> Piece:
    """Raises one of UNREADABLE."""
    chunk = _completion_decoder.decode(content)
    usage = _usage_of(chunk.usage)
    if not chunk.choices:
        return Piece(usage=usage, error=error_text(chunk.error or chunk.message))
    choice = chunk.choices[0]
    text = choice.text or ""
    return Piece(text, "", bool(text), bool(choice.finish_reason), usage, error_text(chunk.error))


def read_response_event(content: bytes) -> Piece:
    """Raises one of UNREADABLE."""
    event = _response_decoder.decode(content)
    piece = NOTHING
    match event.type:
        case "response.output_text.delta":
            piece = Piece(answer=_text(event.delta), has_output=True)
        case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
            piece = Piece(reasoning=_text(event.delta), has_output=True)
        case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
            piece = Piece(has_output=True)
        case "response.completed" | "response.incomplete":
            piece = Piece(ends_answer=True, usage=_response_usage_of(event.response))
        case "response.failed":
            piece = Piece(
                error=error_text(event.response and event.response.error) or "the response failed"
            )
        case "error":
            piece = Piece(
                error=event.message or error_text(event.error) or "an error without a message"
            )
    return piece


def error_text(error: Any) -> str:
    """Returns the message of an error in a stream, whatever form it has; nothing where there is none."""
    if not error:
        return ""
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) and message else str(error)


def _usage_of(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        _num_cached(usage.prompt_tokens_details),
    )


def _response_usage_of(response: _Response | None) -> Usage | None:
    usage = response.usage if response else None
    if usage is None:
        return None
    return Usage(usage.input_tokens, usage.output_tokens, _num_cached(usage.input_tokens_details))


def _num_cached(details: _Details | None) -> int:
    return (details.cached_tokens if details else None) or 0


def _texts_of(parts: Sequence[msgspec.Raw]) -> tuple[str, str]:
    """Returns the text of the answer, and that of the reasoning, which has parts itself."""
    decoded = [_part_decoder.decode(part) for part in parts]
    thoughts = [thought.text for part in decoded for thought in part.thinking]
    return "".join(part.text for part in decoded), "".join(thoughts)


def _text(delta: Any) -> str:
    return delta if isinstance(delta, str) else ""
