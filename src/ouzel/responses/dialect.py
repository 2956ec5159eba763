"""A dialect defines how bodies of the Responses API are read and how responses are written.

The default is the dialect of OpenAI. A profile may have another dialect, in its room below `api/`.
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
    """The properties of responses and events that differ between dialects."""

    # True: reasoning is shown as a summary only. False: reasoning is shown as content, and also as
    # a summary if the client asks for one.
    has_reasoning_as_summary: bool = False
    # `incomplete_details.reason` of a response that a token limit has cut
    limit_reason: LimitReason = "max_output_tokens"
    # `completed_at` of a response that is not completed yet: null, or no key
    early_completed_at: UnsetType | None = None


def _accept_any(fields: JsonObject, model: ServedModel) -> None:
    pass


def _as_sent(fields: ResponsesRequest) -> ResponsesRequest:
    return fields


def _as_read(chat: Chat, fields: GenerationFields) -> Chat:
    return chat


@dataclass(frozen=True, slots=True)
class ResponseDialect:
    """The functions that adapt the Responses API to a dialect, in the order of their calls.

    The functions must be thread-safe.
    """

    parse: Callable[[bytes], JsonObject] = parse_object
    # raises the errors that the dialect reports before all others
    check: Callable[[JsonObject, ServedModel], None] = _accept_any
    # translates fields that have another name or value in this dialect
    translate_fields: Callable[[ResponsesRequest], ResponsesRequest] = _as_sent
    # changes the chat where a field has another meaning in this dialect
    adjust_chat: Callable[[Chat, GenerationFields], Chat] = _as_read
    style: ResponseStyle = ResponseStyle()


OPENAI = ResponseDialect()
