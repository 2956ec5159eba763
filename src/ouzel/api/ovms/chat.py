"""Reads and answers chat completions as OVMS does, with its meaning of some fields.

Its messages always have a text and a list of calls. Its streams open each choice with a chunk of
its own, and end the choice in the chunk of its last text.
"""

from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ouzel.api.endpoint.chat_archive import ChatArchive
from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.dialect import Answer
from ouzel.api.openai.chat import accept_chat
from ouzel.api.openai.chat_answer import (
    ChatAnswer,
    ChatCompletion,
    ChatCompletionChunk,
    ChunkChoice,
    ChunkDelta,
)
from ouzel.api.openai.kept_chat import ChatToStore, keep_chat
from ouzel.api.ovms.body import apply_ovms_meaning, parse_body, read_fields, switches_reasoning
from ouzel.api.ovms.held_pieces import HeldPieces
from ouzel.api.ovms.verbose import make_verbose
from ouzel.config import LimitsConfig
from ouzel.generation import Event, GenerationRequest, ServedModel, Usage
from ouzel.wire.chat import read_chat
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, log_ignored


class OvmsChat:
    """Reads OVMS's chats and begins their answers."""

    parse = staticmethod(parse_body)

    def __init__(self, model: ServedModel, limits: LimitsConfig, archive: ChatArchive) -> None:
        self._model = model
        self._limits = limits
        self._archive = archive

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        request = _translate(read_fields(fields, ChatCompletionRequest, self._model.names))
        chat = apply_ovms_meaning(read_chat(request, self._model, self._limits), request)
        answer, accepted = accept_chat(request, chat, self._model, arrival_s)
        chat_to_store = ChatToStore(answer, request, accepted, fields)
        return [accepted], keep_chat(OvmsChatAnswer(answer), chat_to_store, self._archive)


def _translate(request: ChatCompletionRequest) -> ChatCompletionRequest:
    """Fills in empty contents, and drops an effort beside template variables."""
    messages = request.messages
    if isinstance(messages, list):
        messages = [_fill_content(message) for message in messages]
    if request.reasoning_effort is None or not switches_reasoning(request.chat_template_kwargs):
        return replace(request, messages=messages)
    log_ignored({"reasoning_effort"})
    return replace(request, messages=messages, reasoning_effort=None)


def _fill_content(message: object) -> object:
    if isinstance(message, dict) and message.get("content") in (None, []):
        return {**message, "content": ""}
    return message


class OvmsChatAnswer:
    """Writes OpenAI's answer in OVMS's form."""

    def __init__(self, openai: ChatAnswer) -> None:
        self.is_stream = openai.is_stream
        self.framing = openai.framing
        self._openai = openai
        self._held = HeldPieces[ChatCompletionChunk]()

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[ChatCompletionChunk]:
        chunks: list[ChatCompletionChunk] = []
        for event in events:
            pieces: list[ChatCompletionChunk] = []
            for chunk in self._openai.chunks([event], usage):
                if chunk.choices[0].delta.role is UNSET:
                    pieces.append(chunk)
                else:
                    chunks.append(_make_opening(chunk))
                    pieces += _drop_opening(chunk)
            chunks += self._held.take(event, pieces)
        return chunks

    def last_chunks(self, usage: Usage) -> list[ChatCompletionChunk]:
        return self._openai.last_chunks(usage)

    def whole(self, events: Sequence[Event], usage: Usage) -> ChatCompletion:
        answer = self._openai.whole(events, usage)
        for choice in answer.choices:
            choice.message.content = choice.message.content or ""
            choice.message.tool_calls = choice.message.tool_calls or []
        return answer


def _make_opening(chunk: ChatCompletionChunk) -> ChatCompletionChunk:
    """Returns the chunk for a choice's first token, from the first chunk of OpenAI's answer."""
    choice = chunk.choices[0]
    opening = ChunkChoice(choice.index, ChunkDelta("assistant", content=None))
    if choice.token_ids is not UNSET:
        opening.token_ids = []
    return replace(chunk, choices=[opening])


def _drop_opening(chunk: ChatCompletionChunk) -> Iterator[ChatCompletionChunk]:
    """Yields the rest of the first chunk, unless it is empty."""
    choice = chunk.choices[0]
    choice.delta.role = UNSET
    is_empty = (
        choice.delta in (ChunkDelta(), ChunkDelta(content=""))
        and not choice.logprobs
        and not choice.token_ids
    )
    if not is_empty or choice.finish_reason is not None:
        yield replace(chunk, prompt_logprobs=UNSET, prompt_token_ids=UNSET, warnings=UNSET)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/chat/completions",
        prefixes=PREFIXES,
        profile="ovms",
        is_documented=False,
        endpoint=lambda services: services.make_generating(
            make_verbose(OvmsChat(services.model, services.limits, services.chats), services)
        ),
        choice=choose_for("generate"),
    ),
)
