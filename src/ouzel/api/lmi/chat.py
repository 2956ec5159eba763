"""Reads and answers LMI's chat schema: OpenAI's with other defaults and other answers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.endpoint.chat_archive import ChatArchive
from ouzel.api.http.dialect import Answer
from ouzel.api.http.framing import JSON_LINES, SSE, Framing
from ouzel.api.lmi.defaults import fill_defaults
from ouzel.api.openai.chat import accept_chat
from ouzel.api.openai.chat_answer import (
    ChatAnswer,
    ChatChoice,
    ChatCompletionChunk,
    ChatMessage,
    ChunkChoice,
    ChunkDelta,
)
from ouzel.api.openai.envelope import UsageObject
from ouzel.api.openai.kept_chat import ChatToStore, keep_chat
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.generation import Event, GenerationRequest, ServedModel, Usage
from ouzel.wire.chat import read_chat
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, decode_object, log_ignored
from ouzel.wire.logprobs import ChatLogprobs, ContentLogprob, PromptLogprobs, TopLogprob


class ChatSchema:
    def __init__(
        self, model: ServedModel, limits: LimitsConfig, config: ServerConfig, archive: ChatArchive
    ) -> None:
        self._model = model
        self._limits = limits
        self._archive = archive
        self._default_max_tokens = config.lmi_default_max_tokens
        self._is_strict = config.lmi_strict_logprobs

    def prepare(
        self, fields: JsonObject, arrival_s: float, *, takes_events: bool
    ) -> tuple[list[GenerationRequest], Answer]:
        fields = fill_defaults(fields, self._model)
        if not fields.get("logprobs") and fields.pop("top_logprobs", None) is not None:
            # LMI reads top_logprobs only if logprobs is true
            log_ignored({"top_logprobs"})
        request = decode_object(fields, ChatCompletionRequest)
        chat = read_chat(request, self._model, self._limits)
        options = msgspec.structs.replace(chat.options, default_max_tokens=self._default_max_tokens)
        chat = replace(chat, options=options)
        openai_answer, accepted = accept_chat(request, chat, self._model, arrival_s)
        framing = SSE if takes_events else JSON_LINES
        shown = LmiChatAnswer(openai_answer, framing, is_strict=self._is_strict)
        chat_to_store = ChatToStore(openai_answer, request, accepted, fields)
        return [accepted], keep_chat(shown, chat_to_store, self._archive)


class LmiUsage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class LmiLogprobs(msgspec.Struct):
    content: list[ContentLogprob]


class StrictTopLogprob(msgspec.Struct):
    """An alternative as LMI streams it: with the log probability in the place of the text."""

    token: float
    logprob: float
    bytes: list[int]


class StrictContentLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[StrictTopLogprob]


class StrictLogprobs(msgspec.Struct):
    content: list[StrictContentLogprob]


class LmiChunkChoice(msgspec.Struct):
    index: int
    delta: ChunkDelta
    logprobs: LmiLogprobs | list[StrictLogprobs] | None
    finish_reason: str | None
    token_ids: list[int] | UnsetType = UNSET


class LmiChunk(msgspec.Struct):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    choices: list[LmiChunkChoice]
    usage: LmiUsage | UnsetType | None = UNSET
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class LmiMessage(msgspec.Struct):
    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: object = UNSET


class LmiChoice(msgspec.Struct):
    index: int
    message: LmiMessage
    logprobs: LmiLogprobs | None
    finish_reason: str
    token_ids: list[int] | UnsetType = UNSET


class LmiChatCompletion(msgspec.Struct):
    id: str
    object: Literal["chat.completion"]
    created: int
    choices: list[LmiChoice]
    usage: LmiUsage
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class LmiChatAnswer:
    """Writes OpenAI's answer in LMI's form.

    It has no model name, LMI's finish reasons, and a content in each chunk.
    """

    def __init__(self, openai: ChatAnswer, framing: Framing, *, is_strict: bool) -> None:
        self.is_stream = openai.is_stream
        self.framing = framing
        self._openai = openai
        self._is_strict = is_strict

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[LmiChunk]:
        """Returns the chunks of one wake-up.

        If a choice ends in this wake-up, the chunk of its last text has the finish reason.
        """
        chunks: list[LmiChunk] = []
        newest: dict[int, LmiChunkChoice] = {}
        for chunk in self._openai.chunks(events, usage):
            for choice in chunk.choices:
                if choice.finish_reason is not None and choice.index in newest:
                    newest[choice.index].finish_reason = _finish_reason(choice)
                    continue
                newest[choice.index] = self._chunk_choice(choice)
                chunks.append(_chunk(chunk, [newest[choice.index]]))
        return chunks

    def _chunk_choice(self, choice: ChunkChoice) -> LmiChunkChoice:
        if choice.finish_reason is not None:
            choice.delta.content = ""
        logprobs = self._chunk_logprobs(choice.logprobs)
        return LmiChunkChoice(
            choice.index, choice.delta, logprobs, _finish_reason(choice), choice.token_ids
        )

    def last_chunks(self, usage: Usage) -> list[LmiChunk]:
        return [_chunk(chunk, []) for chunk in self._openai.last_chunks(usage)]

    def whole(self, events: Sequence[Event], usage: Usage) -> LmiChatCompletion:
        answer = self._openai.whole(events, usage)
        choices = [_choice(choice) for choice in answer.choices]
        return LmiChatCompletion(
            answer.id,
            "chat.completion",
            answer.created,
            choices,
            _usage(answer.usage),
            UNSET if answer.prompt_logprobs is None else answer.prompt_logprobs,
            answer.prompt_token_ids,
        )

    def _chunk_logprobs(
        self, logprobs: ChatLogprobs | None
    ) -> LmiLogprobs | list[StrictLogprobs] | None:
        shown = _logprobs(logprobs)
        if shown is None or not self._is_strict:
            return shown
        return [StrictLogprobs([_make_strict(entry) for entry in shown.content])]


def _chunk(chunk: ChatCompletionChunk, choices: list[LmiChunkChoice]) -> LmiChunk:
    usage = _usage(chunk.usage) if isinstance(chunk.usage, UsageObject) else chunk.usage
    shown_prompt = chunk.prompt_logprobs, chunk.prompt_token_ids
    return LmiChunk(chunk.id, "chat.completion.chunk", chunk.created, choices, usage, *shown_prompt)


def _choice(choice: ChatChoice) -> LmiChoice:
    finish_reason = _finish_reason(choice)
    assert finish_reason is not None
    logprobs = _logprobs(choice.logprobs)
    return LmiChoice(
        choice.index, _message(choice.message), logprobs, finish_reason, choice.token_ids
    )


def _message(message: ChatMessage) -> LmiMessage:
    return LmiMessage(
        message.role, message.content, message.reasoning_content or UNSET, message.tool_calls
    )


def _finish_reason(choice: ChatChoice | ChunkChoice) -> str | None:
    if choice.finish_reason != "stop":
        return choice.finish_reason
    return "eos_token" if choice.stop_reason in (UNSET, None) else "stop_sequence"


def _usage(usage: UsageObject) -> LmiUsage:
    return LmiUsage(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)


def _logprobs(logprobs: ChatLogprobs | None) -> LmiLogprobs | None:
    return (
        None
        if logprobs is None
        else LmiLogprobs([_add_sampled(entry) for entry in logprobs.content])
    )


def _add_sampled(entry: ContentLogprob) -> ContentLogprob:
    """Adds the sampled token to the alternatives, where LMI's clients expect it."""
    sampled = TopLogprob(entry.token, entry.logprob, entry.bytes)
    if sampled not in entry.top_logprobs:
        entry.top_logprobs.append(sampled)
    return entry


def _make_strict(entry: ContentLogprob) -> StrictContentLogprob:
    top = [StrictTopLogprob(each.logprob, each.logprob, each.bytes) for each in entry.top_logprobs]
    return StrictContentLogprob(entry.token, entry.logprob, entry.bytes, top)
