"""A dialect of the Responses API says how bodies are read and how responses are written.

OpenAI's dialect is the default. A profile may have another one, in its room below `api/`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from msgspec import UnsetType

from ouzel.generation import ServedModel
from ouzel.responses.request import ResponsesRequest
from ouzel.responses.response_object import LimitReason
from ouzel.wire.chat import Chat
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.fields import GenerationFields


@dataclass(frozen=True, slots=True)
class ResponseStyle:
    """A style is the part of a dialect that shows in responses and their events."""

    # else as content, and as a summary beside it for clients that ask for one
    has_reasoning_as_summary: bool = False
    # of a response that is cut by a limit of tokens
    limit_reason: LimitReason = "max_output_tokens"
    early_completed_at: UnsetType | None = None  # before the response is completed: null, or no key


def _accept_any(fields: JsonObject, model: ServedModel) -> None:
    pass


def _as_sent(fields: ResponsesRequest) -> ResponsesRequest:
    return fields


def _as_read(chat: Chat, fields: GenerationFields) -> Chat:
    return chat


@dataclass(frozen=True, slots=True)
class ResponseDialect:
    """A dialect has the functions that read a body, in the order of their calls; many threads call them."""

    parse: Callable[[bytes], JsonObject] = parse_object
    # raises for faults that come before all others
    check: Callable[[JsonObject, ServedModel], None] = _accept_any
    in_our_words: Callable[[ResponsesRequest], ResponsesRequest] = _as_sent
    in_its_meaning: Callable[[Chat, GenerationFields], Chat] = _as_read
    style: ResponseStyle = ResponseStyle()


OPENAI = ResponseDialect()
