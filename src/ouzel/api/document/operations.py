"""The table of operations: what every path takes and answers, for documents and tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from ouzel.api.conversations import objects as conversations
from ouzel.api.lmi.chat import LmiChatCompletion, LmiChunk
from ouzel.api.lmi.details import Generated, Line
from ouzel.api.lmi.ping import ModelStatus
from ouzel.api.lmi.standard import StandardRequest
from ouzel.api.openai.chat_answer import ChatCompletion, ChatCompletionChunk
from ouzel.api.openai.chat_request import ChatCompletionRequest
from ouzel.api.openai.completions import Completion, CompletionRequest
from ouzel.api.openai.health import Health
from ouzel.api.openai.models import ModelList, ModelObject
from ouzel.api.openai.tokenize import DetokenizedText, DetokenizeRequest, TokenizedText, TokenizeRequest
from ouzel.api.ovms import status as ovms
from ouzel.api.responses.compact import CompactedResponse, CompactRequest
from ouzel.api.responses.count import InputTokens, InputTokensRequest
from ouzel.api.responses.item_lists import ItemList
from ouzel.api.responses.stored import DeletedResponse
from ouzel.responses.events import EVENTS
from ouzel.responses.request import LOGPROBS, ResponsesRequest
from ouzel.responses.response_object import ResponseObject

StructType = type[msgspec.Struct]


@dataclass(frozen=True)
class QueryField:
    name: str
    schema: Mapping[str, object]
    description: str


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Several types are alternatives."""

    method: Literal["get", "post", "delete"]
    path: str
    summary: str
    query: tuple[QueryField, ...] = ()
    bodies: tuple[StructType, ...] = ()
    answers: tuple[object, ...]  # types; none: text
    chunks: tuple[StructType, ...] = ()  # of the stream that `stream` asks for
    is_lmi: bool = False  # in its framing, and with its errors
    is_probe: bool = False  # 503 when requests are not taken; without an answer the status is all


_INCLUDE = QueryField(
    "include", {"type": "array", "items": {"enum": [LOGPROBS]}}, "What is shown beside the text, if it was made so."
)


_PAGE = (
    _INCLUDE,
    QueryField("limit", {"type": "integer", "minimum": 1, "maximum": 100}, "Items in a page. Default: 20."),
    QueryField("order", {"enum": ["asc", "desc"]}, "By age. Default: desc."),
    QueryField("after", {"type": "string"}, "The id of the item before the first."),
)


def _invocation(path: str) -> Operation:
    return Operation(
        method="post",
        path=path,
        summary="LMI: a chat, a prompt, or LMI's own schema. OpenAI's fields need no model here.",
        bodies=(StandardRequest, ChatCompletionRequest, CompletionRequest),
        answers=(Generated, list[Generated], LmiChatCompletion, Completion),
        chunks=(Line, LmiChunk, Completion),
        is_lmi=True,
    )


_CONVERSATIONS = (
    Operation(
        method="post",
        path="/v1/conversations",
        summary="Begins a conversation, with items or empty.",
        bodies=(conversations.CreateConversationRequest,),
        answers=(conversations.Conversation,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}",
        summary="A kept conversation, without its items.",
        answers=(conversations.Conversation,),
    ),
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}",
        summary="Labels a conversation anew.",
        bodies=(conversations.UpdateConversationRequest,),
        answers=(conversations.Conversation,),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}",
        summary="Deletes a conversation and its items.",
        answers=(conversations.DeletedConversation,),
    ),
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}/items",
        summary="Adds items at the end of a conversation.",
        query=(_INCLUDE,),
        bodies=(conversations.CreateItemsRequest,),
        answers=(ItemList,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items",
        summary="The items of a conversation.",
        query=_PAGE,
        answers=(ItemList,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        summary="One item of a conversation.",
        query=(_INCLUDE,),
        answers=(dict[str, object],),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        summary="Deletes an item from a conversation, and answers with the conversation.",
        answers=(conversations.Conversation,),
    ),
)

OPERATIONS = (
    Operation(
        method="post",
        path="/v1/chat/completions",
        summary="Answers a chat. With LMI's profile in LMI's words.",
        bodies=(ChatCompletionRequest,),
        answers=(ChatCompletion,),
        chunks=(ChatCompletionChunk,),
    ),
    Operation(
        method="post",
        path="/v1/completions",
        summary="Goes on from a prompt.",
        bodies=(CompletionRequest,),
        answers=(Completion,),
        chunks=(Completion,),
    ),
    Operation(
        method="post",
        path="/v1/responses",
        summary="Answers a chat in items. A WebSocket to this path asks by events: docs/responses.md.",
        bodies=(ResponsesRequest,),
        answers=(ResponseObject,),
        chunks=EVENTS,
    ),
    Operation(
        method="get",
        path="/v1/responses/{response_id}",
        summary="A kept response, or its events once more.",
        query=(
            _INCLUDE,
            QueryField("stream", {"type": "boolean"}, "Sends its events, and goes on with them until it ends."),
            QueryField("starting_after", {"type": "integer", "minimum": -1}, "The event before; with stream."),
            QueryField("include_obfuscation", {"type": "boolean"}, "Random characters beside deltas; with stream."),
        ),
        answers=(ResponseObject,),
        chunks=EVENTS,
    ),
    Operation(
        method="delete",
        path="/v1/responses/{response_id}",
        summary="Deletes a kept response; one that goes on is cancelled.",
        answers=(DeletedResponse,),
    ),
    Operation(
        method="post",
        path="/v1/responses/{response_id}/cancel",
        summary="Cancels a response that goes on.",
        answers=(ResponseObject,),
    ),
    Operation(
        method="get",
        path="/v1/responses/{response_id}/input_items",
        summary="The items that a response was made from, what it continued among them.",
        query=_PAGE,
        answers=(ItemList,),
    ),
    Operation(
        method="post",
        path="/v1/responses/input_tokens",
        summary="How many tokens the prompt of the same response would have.",
        bodies=(InputTokensRequest,),
        answers=(InputTokens,),
    ),
    Operation(
        method="post",
        path="/v1/responses/compact",
        summary="Puts a summary in the place of what was answered.",
        bodies=(CompactRequest,),
        answers=(CompactedResponse,),
    ),
    *_CONVERSATIONS,
    Operation(
        method="post",
        path="/v1/tokenize",
        summary="Token ids of a text or a chat.",
        bodies=(TokenizeRequest,),
        answers=(TokenizedText,),
    ),
    Operation(
        method="post",
        path="/v1/detokenize",
        summary="The text of token ids.",
        bodies=(DetokenizeRequest,),
        answers=(DetokenizedText,),
    ),
    Operation(method="get", path="/v1/models", summary="What is served.", answers=(ModelList,)),
    Operation(method="get", path="/v1/models/{name}", summary="One served model.", answers=(ModelObject,)),
    Operation(
        method="get",
        path="/health",
        summary="200 while requests are taken, else 503.",
        answers=(Health,),
        is_probe=True,
    ),
    Operation(method="get", path="/metrics", summary="Prometheus metrics.", answers=()),
    _invocation("/invocations"),
    _invocation("/predictions/{model_name}"),
    _invocation("/predictions/{model_name}/{model_version}"),
    _invocation("/models/{model_name}/invoke"),
    Operation(
        method="get", path="/ping", summary="LMI's health check.", answers=(dict[str, ModelStatus],), is_probe=True
    ),
    Operation(
        method="get", path="/v2/health/live", summary="KServe's: the server is there.", answers=(), is_probe=True
    ),
    Operation(
        method="get", path="/v2/health/ready", summary="KServe's: requests are taken.", answers=(), is_probe=True
    ),
    Operation(method="get", path="/v2/models/{name}/ready", summary="KServe's, of a model.", answers=(), is_probe=True),
    Operation(
        method="get",
        path="/v1/config",
        summary="The state of each model, as OpenVINO Model Server tells it.",
        answers=(dict[str, ovms.ModelState],),
    ),
)
