"""Stores the chats of requests with `store: true`, in OpenAI's form for every profile."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.endpoint.chat_archive import ChatArchive
from ouzel.api.http.dialect import Answer
from ouzel.api.http.exchange import Exchange
from ouzel.api.http.kept_answer import KeptAnswer
from ouzel.api.openai.chat_answer import ChatAnswer, ChatChoice, ChatCompletion
from ouzel.api.openai.envelope import UsageObject
from ouzel.errors import InvalidRequest
from ouzel.generation import Event, GenerationRequest, Usage
from ouzel.store.chats.records import NewChat
from ouzel.store.records import Item
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject
from ouzel.wire.logprobs import PromptLogprobs


class StoredChatCompletion(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="chat.completion"
):
    """A stored completion: the answer, and the settings of its request in OpenAI's names."""

    id: str
    created: int
    model: str
    request_id: str
    metadata: dict[str, str] | UnsetType = UNSET  # UNSET in the store, which has it beside the body
    choices: list[ChatChoice]
    usage: UsageObject
    system_fingerprint: str
    service_tier: str = "default"
    prompt_logprobs: PromptLogprobs | None
    prompt_token_ids: list[int] | UnsetType
    warnings: Sequence[str] | UnsetType
    # values that the generation used
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    seed: int | None
    # as in the request
    input_user: str | None
    response_format: object
    tool_choice: object
    tools: object


@dataclass(frozen=True, slots=True)
class ChatToStore:
    """A chat whose generation is about to begin."""

    answer: ChatAnswer  # writes the stored form
    request: ChatCompletionRequest
    generation: GenerationRequest
    fields: JsonObject  # the body of the request

    @property
    def id(self) -> str:
        return self.generation.request_id


def keep_chat(shown: Answer, chat: ChatToStore, archive: ChatArchive) -> Answer:
    """Returns the answer `shown`, and lets it be stored at its end if the request asks for that.

    Raises InvalidRequest if this server stores nothing.
    """
    if not chat.request.store:
        return shown
    if not archive.is_open:
        raise InvalidRequest("must be false: this server stores nothing, given true", field="store")
    messages = _make_messages(chat)

    async def keep(events: Sequence[Event], usage: Usage, exchange: Exchange) -> None:
        await archive.add(chat.id, partial(_make_new, chat, messages, events, usage, exchange))

    return KeptAnswer(shown, keep)


def _make_new(
    chat: ChatToStore,
    messages: tuple[Item, ...],
    events: Sequence[Event],
    usage: Usage,
    exchange: Exchange,
) -> NewChat:
    answer = chat.answer.whole(events, usage)
    return NewChat(
        id=chat.id,
        key_id=exchange.key_id,
        model=answer.model,
        metadata=chat.request.metadata or {},
        body=msgspec.json.encode(_make_stored(chat, answer, exchange.request_id)),
        messages=messages,
    )


def _make_stored(
    chat: ChatToStore, answer: ChatCompletion, request_id: str
) -> StoredChatCompletion:
    params, fields = chat.generation.params, chat.fields
    return StoredChatCompletion(
        id=answer.id,
        created=answer.created,
        model=answer.model,
        request_id=request_id,
        choices=answer.choices,
        usage=answer.usage,
        system_fingerprint=answer.system_fingerprint,
        prompt_logprobs=answer.prompt_logprobs,
        prompt_token_ids=answer.prompt_token_ids,
        warnings=answer.warnings,
        temperature=params.temperature,
        top_p=params.top_p,
        presence_penalty=params.presence_penalty,
        frequency_penalty=params.frequency_penalty,
        seed=params.seed,
        input_user=chat.request.user,
        response_format=fields.get("response_format"),
        tool_choice=fields.get("tool_choice"),
        tools=fields.get("tools"),
    )


def _make_messages(chat: ChatToStore) -> tuple[Item, ...]:
    """Returns the messages of the request in their stored form.

    The prompt was rendered from them, so they are a list of objects.
    """
    messages = chat.request.messages
    assert isinstance(messages, list)
    items = []
    for number, message in enumerate(messages):
        message_id = f"{chat.id}-{number}"
        items.append(Item(message_id, msgspec.json.encode(_show_message(message_id, message))))
    return tuple(items)


def _show_message(message_id: str, message: JsonObject) -> JsonObject:
    """Returns a message as OpenAI lists it: the parts of a content are beside their text.

    The null values stand for fields that a client may read.
    """
    shown = {"content": None, "refusal": None, **message, "content_parts": None}
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        text = "".join(each for each in texts if isinstance(each, str))
        shown |= {"content": text or None, "content_parts": content}
    return shown | {"id": message_id}
