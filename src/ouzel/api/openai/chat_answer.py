"""Writes the answers of POST /chat/completions: one object, or chunks."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.http.framing import SSE
from ouzel.api.openai.annotations import ChatAnnotation, show_annotations
from ouzel.api.openai.chat_view import ChatView
from ouzel.api.openai.envelope import Envelope, StreamedUsage, UsageObject, usage_object
from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Finished,
    Output,
    Prompt,
    PromptScored,
    ReasoningDelta,
    ServedModel,
    ToolCallDelta,
    Usage,
)
from ouzel.responses.hosted.citations import CitationFinder, Source
from ouzel.types.step_output import FinishReason, PositionLogprobs
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.fold import (
    CustomInput,
    FoldedChoice,
    ToolCall,
    ToolFunction,
    fold,
    prompt_logprobs_in,
    public_finish_reason,
)
from ouzel.wire.logprobs import (
    ChatLogprobs,
    PromptLogprobs,
    chat_logprobs,
    prompt_logprobs,
    token_text,
)
from ouzel.wire.shown_text import ReasoningPlace


class ChunkToolCall(msgspec.Struct, omit_defaults=True):
    index: int
    function: ToolFunction | UnsetType = UNSET
    custom: CustomInput | UnsetType = UNSET
    id: str | UnsetType = UNSET
    type: Literal["function", "custom"] | UnsetType = UNSET


class ChunkDelta(msgspec.Struct):
    role: Literal["assistant"] | UnsetType = UNSET
    # null with OpenVINO Model Server's profile, in a choice's first chunk
    content: str | UnsetType | None = UNSET
    # the name of DeepSeek, SGLang and OpenVINO Model Server
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET  # the name of OpenRouter, Ollama and vLLM
    tool_calls: list[ChunkToolCall] | UnsetType = UNSET
    function_call: ToolFunction | UnsetType = UNSET  # answers the old `functions`
    annotations: list[ChatAnnotation] | UnsetType = UNSET  # citations in the text up to here


class ChunkChoice(msgspec.Struct):
    index: int
    delta: ChunkDelta
    logprobs: ChatLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET


class ChatCompletionChunk(msgspec.Struct, tag_field="object", tag="chat.completion.chunk"):
    id: str
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChunkChoice]
    usage: UsageObject | UnsetType | None = UNSET
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET  # sent in the first chunk
    prompt_token_ids: list[int] | UnsetType = UNSET  # sent in the first chunk
    # sent in the first chunk, if tools of the request were left out
    warnings: Sequence[str] | UnsetType = UNSET


class ChatMessage(msgspec.Struct):
    """The message of a choice. Null stands for fields without a type in the `openai` client.

    Reading an absent field would be an error in the client.
    """

    content: str | None
    role: Literal["assistant"] = "assistant"
    refusal: None = None
    reasoning_content: str | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    tool_calls: list[ToolCall] | UnsetType = UNSET
    function_call: ToolFunction | UnsetType = UNSET
    annotations: list[ChatAnnotation] | UnsetType = UNSET  # citations of pages in the content


class ChatChoice(msgspec.Struct):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: str
    stop_reason: int | str | None = None
    token_ids: list[int] | UnsetType = UNSET


class ChatCompletion(msgspec.Struct, tag_field="object", tag="chat.completion"):
    id: str
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: UsageObject
    prompt_logprobs: PromptLogprobs | None = None
    prompt_token_ids: list[int] | UnsetType = UNSET
    warnings: Sequence[str] | UnsetType = UNSET  # present if tools of the request were left out


class ChatAnswer:
    def __init__(
        self,
        envelope: Envelope,
        model: ServedModel,
        request: ChatCompletionRequest,
        prompt: Prompt,
        *,
        reasoning_place: ReasoningPlace = "apart",
        warnings: Sequence[str] = (),
        sources: Mapping[int, Source] | None = None,
    ) -> None:
        """`sources` come from tools that this server runs, and may grow; None: no such tools."""
        self._sources = sources
        self._citations = None if sources is None else CitationFinder(sources)
        self.is_stream = bool(request.stream)
        self.framing = SSE
        self._envelope = envelope
        self._model = model
        self._shows_token_ids = request.return_token_ids or False
        # A stream sends these two in its first chunk.
        self._prompt_token_ids = prompt.token_ids if self._shows_token_ids else UNSET
        self._warnings: Sequence[str] | UnsetType = warnings or UNSET
        self._has_begun = False  # the first chunk was sent
        # set when they are known, until a chunk has sent them
        self._prompt_logprobs: PromptLogprobs | UnsetType = UNSET
        self._scores_prompt = request.prompt_logprobs is not None
        self._text_of = (
            token_text(model, as_token_ids=request.return_tokens_as_token_ids)
            if request.logprobs
            else None
        )
        self._streamed_usage = StreamedUsage.from_request(request)
        self._introduced: set[int] = set()  # choices whose chunk with the role was sent
        self._called: set[int] = set()  # choices that call tools
        self._speaks_of_functions = request.functions is not None
        echo = _last_answer(request.messages) if request.echo else ""
        self._make_view = partial(ChatView, reasoning_place, echo, model)
        self._view = self._make_view()  # chunks have one view for all

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[ChatCompletionChunk]:
        chunk_usage = self._streamed_usage.for_chunk(usage)
        chunks = [
            self._chunk([choice], chunk_usage)
            for event in self._view.show(events)
            for choice in self._read_choices(event)
        ]
        if self._scores_prompt and (positions := prompt_logprobs_in(events)) is not None:
            self._prompt_logprobs = prompt_logprobs(positions, self._model)
        if chunks:
            chunks[0].prompt_logprobs, self._prompt_logprobs = self._prompt_logprobs, UNSET
            if not self._has_begun:
                chunks[0].prompt_token_ids, chunks[0].warnings = (
                    self._prompt_token_ids,
                    self._warnings,
                )
                self._has_begun = True
        return list(chunks)

    def last_chunks(self, usage: Usage) -> list[ChatCompletionChunk]:
        return [self._chunk([], usage_object(usage))] if self._streamed_usage.at_end else []

    def whole(self, events: Sequence[Event], usage: Usage) -> ChatCompletion:
        """Returns the unary answer; it may be called after the chunks too."""
        envelope, positions = self._envelope, prompt_logprobs_in(events)
        return ChatCompletion(
            envelope.id,
            envelope.created,
            envelope.model,
            envelope.system_fingerprint,
            [self._whole_choice(choice) for choice in fold(self._make_view().show(events))],
            usage_object(usage),
            None if positions is None else prompt_logprobs(positions, self._model),
            self._prompt_token_ids,
            self._warnings,
        )

    def _chunk(
        self, choices: list[ChunkChoice], usage: UsageObject | UnsetType | None
    ) -> ChatCompletionChunk:
        envelope = self._envelope
        return ChatCompletionChunk(
            envelope.id,
            envelope.created,
            envelope.model,
            envelope.system_fingerprint,
            choices,
            usage,
        )

    def _read_choices(self, event: Event) -> Iterator[ChunkChoice]:
        match event:
            case PromptScored():
                return  # it belongs to no choice
            case Output(index, deltas, token_ids, logprobs):
                shown = self._logprobs(logprobs) if logprobs else None
                shown_ids = token_ids if self._shows_token_ids else UNSET
                is_first = index not in self._introduced
                if not deltas and (is_first or shown is not None or shown_ids):
                    # a first token without text, or token ids or logprobs without text
                    deltas = [ContentDelta("")]
                for delta in deltas:
                    chunk_delta = self._chunk_delta(index, delta, is_first=is_first)
                    yield ChunkChoice(index, chunk_delta, shown, token_ids=shown_ids)
                    is_first, shown, shown_ids = False, None, [] if self._shows_token_ids else UNSET
                self._introduced.add(index)
            case Finished(index, reason, stop_reason):
                role: Literal["assistant"] | UnsetType = (
                    UNSET if index in self._introduced else "assistant"
                )
                finish_reason = self._finish_reason(reason, called=index in self._called)
                yield ChunkChoice(
                    index,
                    ChunkDelta(role),
                    None,
                    finish_reason,
                    UNSET if stop_reason is None else stop_reason,
                    [] if self._shows_token_ids else UNSET,
                )
            case unreachable:
                assert_never(unreachable)

    def _chunk_delta(self, index: int, delta: Delta, *, is_first: bool) -> ChunkDelta:
        role: Literal["assistant"] | UnsetType = "assistant" if is_first else UNSET
        match delta:
            case ContentDelta(text):
                found = None if self._citations is None else self._citations.add(text)
                cited = [] if found is None else show_annotations(found)
                return ChunkDelta(role, text, annotations=cited or UNSET)
            case ReasoningDelta(text):
                chunk_delta = ChunkDelta(role)
                self._show_reasoning(chunk_delta, text)
                return chunk_delta
            case ToolCallDelta():
                self._called.add(index)
                if self._speaks_of_functions:
                    return ChunkDelta(role, function_call=_function(delta))
                return ChunkDelta(role, tool_calls=[_chunk_tool_call(delta)])
            case unreachable:
                assert_never(unreachable)

    def _whole_choice(self, choice: FoldedChoice) -> ChatChoice:
        message = ChatMessage(choice.content if choice.content or not choice.tool_calls else None)
        self._show_reasoning(message, choice.reasoning or None)
        if self._sources is not None:
            cited = show_annotations(CitationFinder(self._sources).add(choice.content))
            message.annotations = cited
        if choice.tool_calls and self._speaks_of_functions:
            message.function_call = choice.tool_calls[0].function
        elif choice.tool_calls:
            message.tool_calls = choice.tool_calls
        return ChatChoice(
            choice.index,
            message,
            self._logprobs(choice.logprobs),
            self._finish_reason(choice.finished.reason, called=bool(choice.tool_calls)),
            choice.finished.stop_reason,
            choice.token_ids if self._shows_token_ids else UNSET,
        )

    def _show_reasoning(self, shown: ChunkDelta | ChatMessage, text: str | None) -> None:
        for name in self._model.reasoning_fields:
            setattr(shown, name, text)

    def _finish_reason(self, reason: FinishReason, *, called: bool) -> str:
        finish_reason = public_finish_reason(reason, called=called)
        return (
            "function_call"
            if finish_reason == "tool_calls" and self._speaks_of_functions
            else finish_reason
        )

    def _logprobs(self, positions: Sequence[PositionLogprobs]) -> ChatLogprobs | None:
        return (
            None if self._text_of is None else chat_logprobs(positions, self._model, self._text_of)
        )


def _chunk_tool_call(delta: ToolCallDelta) -> ChunkToolCall:
    call = ChunkToolCall(delta.index)
    if delta.is_custom:
        call.custom = CustomInput(delta.arguments, UNSET if delta.name is None else delta.name)
    else:
        call.function = _function(delta)
    if delta.id is not None:
        call.id, call.type = delta.id, "custom" if delta.is_custom else "function"
    return call


def _function(delta: ToolCallDelta) -> ToolFunction:
    return ToolFunction(arguments=delta.arguments, name=UNSET if delta.name is None else delta.name)


def _last_answer(messages: object) -> str:
    """Returns the text of the last rendered message if it is the assistant's, else no text."""
    assert isinstance(messages, list)
    last = messages[-1]
    if last["role"] != "assistant":
        return ""
    content = last.get("content") or ""
    return (
        content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
    )
