"""OVMS's chat completions are OpenAI's with its reading of some fields.

Its messages always have a text and a list of calls; its streams open each choice with a chunk of its own, and end the
choice with its last text.
"""

from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

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
from ouzel.api.ovms.body import in_ovms_meaning, parse_body, read_fields, switches_reasoning
from ouzel.api.ovms.held_pieces import HeldPieces
from ouzel.api.ovms.verbose import verbose_if_asked
from ouzel.config import LimitsConfig
from ouzel.generation import Event, GenerationRequest, ServedModel, Usage
from ouzel.wire.chat import read_chat
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, log_ignored


class OvmsChat:
    """Implements `Dialect`."""

    parse = staticmethod(parse_body)

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._limits = limits

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        request = _in_our_words(read_fields(fields, ChatCompletionRequest, self._model.names))
        chat = in_ovms_meaning(read_chat(request, self._model, self._limits), request)
        answer, accepted = accept_chat(request, chat, self._model, arrival_s)
        return [accepted], OvmsChatAnswer(answer)


def _in_our_words(request: ChatCompletionRequest) -> ChatCompletionRequest:
    """Gives messages without a content an empty one; what the template is told by name counts before an effort."""
    messages = request.messages
    if isinstance(messages, list):
        messages = [_with_content(message) for message in messages]
    if request.reasoning_effort is None or not switches_reasoning(request.chat_template_kwargs):
        return replace(request, messages=messages)
    log_ignored({"reasoning_effort"})
    return replace(request, messages=messages, reasoning_effort=None)


def _with_content(message: object) -> object:
    if isinstance(message, dict) and message.get("content") in (None, []):
        return {**message, "content": ""}
    return message


class OvmsChatAnswer:
    """Implements `Answer`."""

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
                    chunks.append(_opening(chunk))
                    pieces += _without_opening(chunk)
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


def _opening(chunk: ChatCompletionChunk) -> ChatCompletionChunk:
    """Returns the chunk that tells of a choice's first token, made of the first chunk in OpenAI's words."""
    choice = chunk.choices[0]
    opening = ChunkChoice(choice.index, ChunkDelta("assistant", content=None))
    if choice.token_ids is not UNSET:
        opening.token_ids = []
    return replace(chunk, choices=[opening])


def _without_opening(chunk: ChatCompletionChunk) -> Iterator[ChatCompletionChunk]:
    """Yields the rest of the first chunk, if it says anything."""
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
            verbose_if_asked(OvmsChat(services.model, services.limits), services)
        ),
    ),
)
