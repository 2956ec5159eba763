"""POST /completions: prompts, as texts or as token ids, go on."""

from collections.abc import Iterator, Sequence
from typing import Annotated, assert_never

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ouzel.api.answer import Answer, Envelope, StreamedUsage, UsageObject, new_envelope, usage_object
from ouzel.api.decode import decode_body, log_ignored
from ouzel.api.fields import GenerationFields, check_limits, check_num_logprobs, generation_request, truncation_of
from ouzel.api.fold import FoldedChoice, fold, public_finish_reason
from ouzel.api.framing import SSE
from ouzel.api.logprobs import CompletionLogprobs, PromptLogprobs, completion_logprobs, prompt_logprobs, token_text
from ouzel.api.prompt_field import OnePrompt, read_prompts
from ouzel.config import LimitsConfig
from ouzel.generation import (
    ContentDelta,
    Event,
    Finished,
    GenerationRequest,
    Output,
    Prompt,
    PromptScored,
    ServedModel,
    Truncation,
    Usage,
)
from ouzel.types import PositionLogprobs

_DEFAULT_MAX_TOKENS = 16  # OpenAI's


class CompletionRequest(GenerationFields, kw_only=True):
    prompt: Annotated[
        str | list[object], Meta(description="A text, a list of texts, a list of token ids, or a list of such lists.")
    ]
    logprobs: (
        Annotated[int, Meta(ge=0, description="Alternatives per token; at most the server's max_logprobs.")] | None
    ) = None
    add_special_tokens: Annotated[bool | None, Meta(description="Puts the model's first token before a text.")] = None


class Completions:
    """The `Dialect` of completions."""

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._limits = limits

    def prepare(self, body: bytes, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        asked, unknown = decode_body(body, CompletionRequest)
        log_ignored(unknown)
        check_limits(asked, self._model, self._limits)
        check_num_logprobs(asked.logprobs, self._limits, param="logprobs")
        prompts = self._prompts(asked)
        envelope = new_envelope("cmpl", self._model)
        requests = [
            self._request(asked, prompt, f"{envelope.id}-{position}", arrival_s)
            for position, prompt in enumerate(prompts)
        ]
        return requests, CompletionAnswer(envelope, self._model, asked, prompts)

    def _prompts(self, asked: CompletionRequest) -> list[Prompt]:
        engine = self._model.engine
        max_prompts = min(self._limits.max_prompts, engine.max_admitted)
        truncation = truncation_of(asked, engine.info.max_model_len, asked.max_tokens or _DEFAULT_MAX_TOKENS)
        given = read_prompts(asked.prompt, max_prompts=max_prompts, n=asked.n or 1)
        return [self._render(asked, path, prompt, truncation) for path, prompt in given]

    def _render(self, asked: CompletionRequest, path: str, prompt: OnePrompt, truncation: Truncation | None) -> Prompt:
        renderer = self._model.renderer
        if isinstance(prompt, str):
            special = asked.add_special_tokens is not False
            return renderer.render_text(prompt, add_special_tokens=special, truncation=truncation, param=path)
        return renderer.render_token_ids(prompt, truncation=truncation, param=path)

    def _request(
        self, asked: CompletionRequest, prompt: Prompt, request_id: str, arrival_s: float
    ) -> GenerationRequest:
        return generation_request(
            asked,
            self._model,
            prompt,
            request_id=request_id,
            max_tokens=("max_tokens", asked.max_tokens),
            default_max_tokens=_DEFAULT_MAX_TOKENS,
            num_logprobs=asked.logprobs,
            num_prompt_logprobs=asked.prompt_logprobs,
            shows_prompt=asked.prompt_logprobs is not None,
            continues_prompt=True,
            parses_output=False,
            arrival_s=arrival_s,
        )


class CompletionChoice(msgspec.Struct):
    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET  # in a stream with the choice's first chunk
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET  # the same


class Completion(msgspec.Struct, tag_field="object", tag="text_completion"):
    """Unary answers and chunks have one shape."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: UsageObject | UnsetType | None = UNSET


class CompletionAnswer:
    """The `Answer` of completions."""

    def __init__(
        self, envelope: Envelope, model: ServedModel, asked: CompletionRequest, prompts: Sequence[Prompt]
    ) -> None:
        self.is_stream = bool(asked.stream)
        self.framing = SSE
        self._envelope = envelope
        self._model = model
        self._prompts = prompts
        self._n = asked.n or 1
        self._shows_token_ids = asked.return_token_ids or False
        self._text_of = token_text(model, as_token_ids=asked.return_tokens_as_token_ids)
        self._shows_logprobs = asked.logprobs is not None
        self._streamed_usage = StreamedUsage.asked_by(asked)
        self._skips_special_tokens = asked.skip_special_tokens is not False
        self._scored: dict[int, list[PositionLogprobs]] = {}  # by the first choice of a prompt
        self._begun: set[int] = set()  # choices of which something has been shown
        self._num_chars: dict[int, int] = {}  # by index: of the tokens whose logprobs have been shown

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[object]:
        chunk_usage = self._streamed_usage.of_chunk(usage)
        return [self._completion([choice], chunk_usage) for event in events for choice in self._choices_of(event)]

    def last_chunks(self, usage: Usage) -> list[object]:
        return [self._completion([], usage_object(usage))] if self._streamed_usage.at_end else []

    def whole(self, events: Sequence[Event], usage: Usage) -> object:
        self._scored = {event.index: event.logprobs for event in events if isinstance(event, PromptScored)}
        return self._completion([self._whole_choice(choice) for choice in fold(events)], usage_object(usage))

    def _completion(self, choices: list[CompletionChoice], usage: UsageObject | UnsetType | None) -> Completion:
        envelope = self._envelope
        return Completion(envelope.id, envelope.created, envelope.model, envelope.system_fingerprint, choices, usage)

    def _choices_of(self, event: Event) -> Iterator[CompletionChoice]:
        match event:
            case PromptScored(index, logprobs):
                self._scored[index] = logprobs
            case Output(index, deltas, token_ids, logprobs):
                text = "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))
                choice = CompletionChoice(index, text, self._logprobs(index, logprobs))
                yield self._with_extensions(choice, token_ids)
            case Finished(index, reason, stop_reason):
                finish_reason = public_finish_reason(reason, called=False)
                choice = CompletionChoice(index, "", None, finish_reason, UNSET if stop_reason is None else stop_reason)
                yield self._with_extensions(choice, [])
            case unreachable:
                assert_never(unreachable)

    def _whole_choice(self, choice: FoldedChoice) -> CompletionChoice:
        shown = CompletionChoice(
            choice.index,
            choice.content,
            self._logprobs(choice.index, choice.logprobs),
            public_finish_reason(choice.finished.reason, called=False),
            UNSET if choice.finished.stop_reason is None else choice.finished.stop_reason,
        )
        return self._with_extensions(shown, choice.token_ids)

    def _with_extensions(self, choice: CompletionChoice, token_ids: list[int]) -> CompletionChoice:
        if self._shows_token_ids:
            choice.token_ids = token_ids
            if choice.index not in self._begun:
                choice.prompt_token_ids = self._prompts[choice.index // self._n].token_ids
        first = choice.index // self._n * self._n
        if choice.index not in self._begun and first in self._scored:
            choice.prompt_logprobs = prompt_logprobs(self._scored[first], self._model)
        self._begun.add(choice.index)
        return choice

    def _logprobs(self, index: int, positions: Sequence[PositionLogprobs]) -> CompletionLogprobs | None:
        if not self._shows_logprobs:
            return None
        shown, self._num_chars[index] = completion_logprobs(
            positions,
            self._model,
            self._text_of,
            self._num_chars.get(index, 0),
            skip_special_tokens=self._skips_special_tokens,
        )
        return shown
