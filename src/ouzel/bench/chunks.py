"""Reads pieces of answers from the chunks and events of streams, thousands of them per second."""

from typing import Any  # JSON

import msgspec

from ouzel.client.chat_chunks import decode_chat_chunk, read_error


class Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int
    output_tokens: int
    cached_tokens: int  # input tokens that the server found in its prefix cache


class Piece(msgspec.Struct, frozen=True, gc=False):
    """The contents of one chunk or event."""

    answer: str = ""  # text that the next turn repeats as the answer
    reasoning: str = ""
    has_output: bool = False  # the chunk has text, reasoning or a part of a tool call
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


class _CompletionChoice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None


class _CompletionChunk(msgspec.Struct):
    choices: list[_CompletionChoice] | None = None
    usage: _Usage | None = None
    error: Any = None
    message: Any = None  # message of an error that is the whole chunk


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
    message: str = ""  # message of the event `error`
    error: Any = None


_usage_decoder = msgspec.json.Decoder(_Usage)
_completion_decoder = msgspec.json.Decoder(_CompletionChunk)
_response_decoder = msgspec.json.Decoder(_ResponseEvent)


def read_chat_chunk(content: bytes) -> Piece:
    """Reads a chunk of a chat completion. Raises one of UNREADABLE."""
    chunk = decode_chat_chunk(content)
    usage = _convert_usage(_usage_decoder.decode(chunk.usage)) if chunk.has_usage else None
    choice = chunk.choice
    if choice.delta is None:
        return Piece("", "", False, bool(choice.finish_reason), usage, chunk.error_text)
    answer, reasoning = choice.delta.texts()
    has_output = bool(choice.delta.content or reasoning or answer or choice.delta.tool_calls)
    ends_answer = bool(choice.finish_reason)
    return Piece(answer, reasoning, has_output, ends_answer, usage, chunk.error_text)


def read_completion_chunk(content: bytes) -> Piece:
    """Reads a chunk of a text completion. Raises one of UNREADABLE."""
    chunk = _completion_decoder.decode(content)
    usage = None if chunk.usage is None else _convert_usage(chunk.usage)
    if not chunk.choices:
        return Piece(usage=usage, error=error_text(chunk.error or chunk.message))
    choice = chunk.choices[0]
    text = choice.text or ""
    return Piece(text, "", bool(text), bool(choice.finish_reason), usage, error_text(chunk.error))


def read_response_event(content: bytes) -> Piece:
    """Reads an event of a response. Raises one of UNREADABLE."""
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
            piece = Piece(ends_answer=True, usage=_read_response_usage(event.response))
        case "response.failed":
            error = error_text(event.response and event.response.error)
            piece = Piece(error=error or "the response failed")
        case "error":
            error = event.message or error_text(event.error)
            piece = Piece(error=error or "an error without a message")
    return piece


def error_text(error: Any) -> str:
    """Returns the message of an error in a stream; "" without an error."""
    return read_error(error) if error else ""


def _convert_usage(usage: _Usage) -> Usage:
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        _num_cached(usage.prompt_tokens_details),
    )


def _read_response_usage(response: _Response | None) -> Usage | None:
    usage = response.usage if response else None
    if usage is None:
        return None
    return Usage(usage.input_tokens, usage.output_tokens, _num_cached(usage.input_tokens_details))


def _num_cached(details: _Details | None) -> int:
    return (details.cached_tokens if details else None) or 0


def _text(delta: Any) -> str:
    return delta if isinstance(delta, str) else ""
