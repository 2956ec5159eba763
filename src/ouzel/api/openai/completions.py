"""Continues prompts, which are texts or token ids: POST /completions."""

from collections.abc import Iterator, Sequence
from typing import Annotated, assert_never

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.dialect import Answer
from ouzel.api.http.framing import SSE
from ouzel.api.openai.envelope import (
    Envelope,
    StreamedUsage,
    UsageObject,
    new_envelope,
    usage_object,
)
from ouzel.api.openai.shown_prompt import ShownPrompt
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import (
    ContentDelta,
    Event,
    Finished,
    GenerationOptions,
    GenerationRequest,
    Output,
    Prompt,
    PromptScored,
    ServedModel,
    Truncation,
    Usage,
    accept,
)
from ouzel.types.step_output import PositionLogprobs
from ouzel.wire.decode import JsonObject, decode_object, parse_object
from ouzel.wire.fields import CompletionFields, LogprobTokenIds
from ouzel.wire.fold import FoldedChoice, fold, public_finish_reason
from ouzel.wire.logprobs import (
    CompletionLogprobs,
    PromptLogprobs,
    completion_logprobs,
    join_logprobs,
    token_text,
)
from ouzel.wire.options import (
    check_completion,
    read_num_alternatives,
    read_options,
    read_truncation,
)
from ouzel.wire.prompt_field import OnePrompt, PromptField, read_prompts

_DEFAULT_MAX_TOKENS = 16  # OpenAI's default


class CompletionRequest(CompletionFields, kw_only=True):
    prompt: PromptField
    logprobs: (
        Annotated[
            int,
            Meta(
                ge=-1,
                description="Alternatives per token; at most the server's max_logprobs; -1: the "
                "whole vocabulary.",
            ),
        ]
        | None
    ) = None
    logprob_token_ids: LogprobTokenIds | None = None
    suffix: Annotated[
        str | None,
        Meta(
            description="The text after the completion: fills in the middle, for models with "
            "special tokens for it."
        ),
    ] = None
    echo: Annotated[
        bool | None,
        Meta(description="Returns the prompt, and its logprobs, before the completion."),
    ] = None
    add_special_tokens: Annotated[
        bool | None, Meta(description="Adds the model's first token before a text.")
    ] = None


def decode_completion(fields: JsonObject) -> CompletionRequest:
    """Decodes a parsed body. As in vLLM, `max_tokens` null means no limit, not the default."""
    if "max_tokens" in fields and fields["max_tokens"] is None:
        fields = {**fields, "max_tokens": -1}
    return decode_object(fields, CompletionRequest)


class Completions:
    parse = staticmethod(parse_object)

    def __init__(
        self,
        model: ServedModel,
        limits: LimitsConfig,
        *,
        default_max_tokens: int | None = _DEFAULT_MAX_TOKENS,
    ) -> None:
        self._model = model
        self._limits = limits
        self._default_max_tokens = default_max_tokens

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        return self.read(decode_completion(fields), arrival_s)

    def read(
        self, body: CompletionRequest, arrival_s: float
    ) -> tuple[list[GenerationRequest], "CompletionAnswer"]:
        options = self._options(body)
        prompts = self._prompts(body, options)
        options = replace(options, num_prompts=len(prompts))
        envelope = new_envelope("cmpl", self._model)
        requests = [
            accept(
                options,
                prompt,
                self._model,
                request_id=f"{envelope.id}-{position}",
                arrival_s=arrival_s,
            )
            for position, prompt in enumerate(prompts)
        ]
        return requests, CompletionAnswer(
            envelope, self._model, body, prompts, n=options.choosing.n
        )

    def _options(self, body: CompletionRequest) -> GenerationOptions:
        options = read_options(body, self._model, self._limits)
        check_completion(body)
        _check_suffix(body)
        if body.logprob_token_ids and body.logprobs is None:
            raise InvalidRequest(
                f"needs logprobs, given {body.logprob_token_ids}", field="logprob_token_ids"
            )
        num_logprobs = read_num_alternatives(
            body.logprobs, self._model, self._limits, param="logprobs"
        )
        num_scored = read_num_alternatives(
            body.prompt_logprobs, self._model, self._limits, param="prompt_logprobs"
        )
        if body.echo and num_logprobs is not None:
            # enough for the echo and for prompt_logprobs
            num_scored = max(num_logprobs, num_scored or 0)
        return replace(
            options,
            default_max_tokens=self._default_max_tokens,
            may_be_empty=bool(body.echo) or body.prompt_logprobs is not None,
            num_logprobs=num_logprobs,
            num_prompt_logprobs=num_scored,
            logprobs_param="logprobs",
            logprob_token_ids=body.logprob_token_ids,
        )

    def _prompts(self, body: CompletionRequest, options: GenerationOptions) -> list[Prompt]:
        max_prompts = min(self._limits.max_prompts, self._model.engine.max_admitted)
        truncation = read_truncation(body, options.most_tokens)
        entries = read_prompts(body.prompt, max_prompts=max_prompts, n=options.choosing.best_of)
        return [self._render(body, path, prompt, truncation) for path, prompt in entries]

    def _render(
        self, body: CompletionRequest, path: str, prompt: OnePrompt, truncation: Truncation | None
    ) -> Prompt:
        renderer, special = self._model.renderer, body.add_special_tokens is not False
        if body.suffix:
            return renderer.render_infill(
                prompt, body.suffix, add_special_tokens=special, param=path
            )
        if isinstance(prompt, str):
            return renderer.render_text(
                prompt, add_special_tokens=special, truncation=truncation, param=path
            )
        return renderer.render_token_ids(prompt, truncation=truncation, param=path)


def _check_suffix(body: CompletionRequest) -> None:
    """Raises InvalidRequest for a suffix together with `echo` or truncation.

    The prompt around a gap differs from the text that was sent, and cannot be cut.
    """
    if not body.suffix:
        return
    if body.echo:
        raise InvalidRequest("must not be true with a suffix", field="echo")
    if body.truncate_prompt_tokens is not None:
        field = "truncate_prompt_tokens"
        raise InvalidRequest("must not be given with a suffix", field=field)


class CompletionChoice(msgspec.Struct):
    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | UnsetType | None = UNSET
    token_ids: list[int] | UnsetType = UNSET
    # sent in the first chunk of the choice
    prompt_token_ids: list[int] | UnsetType = UNSET
    # sent in the first chunk of the choice
    prompt_logprobs: PromptLogprobs | UnsetType | None = UNSET


class Completion(msgspec.Struct, tag_field="object", tag="text_completion"):
    """A unary answer or a chunk: they have the same shape."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: UsageObject | UnsetType | None = UNSET


class CompletionAnswer:
    def __init__(
        self,
        envelope: Envelope,
        model: ServedModel,
        body: CompletionRequest,
        prompts: Sequence[Prompt],
        *,
        n: int,
    ) -> None:
        self.is_stream = bool(body.stream)
        self.framing = SSE
        self._envelope = envelope
        self._model = model
        self._body = body
        self._n = n  # choices of each prompt
        self._text_of = token_text(model, as_token_ids=body.return_tokens_as_token_ids)
        self._prompts = [
            ShownPrompt(
                prompt,
                model,
                self._text_of,
                num_logprobs=body.logprobs,
                num_prompt_logprobs=body.prompt_logprobs,
            )
            for prompt in prompts
        ]
        self._streamed_usage = StreamedUsage.from_request(body)
        self._begun: set[int] = set()  # choices of which a piece was sent
        # characters of the tokens with shown logprobs, by the index of the choice
        self._num_chars: dict[int, int] = {}

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[Completion]:
        chunk_usage = self._streamed_usage.for_chunk(usage)
        return [
            self._completion([choice], chunk_usage)
            for event in events
            for choice in self._read_choices(event)
        ]

    def last_chunks(self, usage: Usage) -> list[Completion]:
        return [self._completion([], usage_object(usage))] if self._streamed_usage.at_end else []

    def whole(self, events: Sequence[Event], usage: Usage) -> Completion:
        for event in events:
            if isinstance(event, PromptScored):
                self._find_prompt(event.index).scores = event.logprobs
        return self._completion(
            [self._whole_choice(choice) for choice in fold(events)], usage_object(usage)
        )

    def _completion(
        self, choices: list[CompletionChoice], usage: UsageObject | UnsetType | None
    ) -> Completion:
        envelope = self._envelope
        return Completion(
            envelope.id,
            envelope.created,
            envelope.model,
            envelope.system_fingerprint,
            choices,
            usage,
        )

    def _find_prompt(self, index: int) -> ShownPrompt:
        return self._prompts[index // self._n]

    def _read_choices(self, event: Event) -> Iterator[CompletionChoice]:
        match event:
            case PromptScored(index, scores):
                self._find_prompt(index).scores = scores
            case Output(index, deltas, token_ids, logprobs):
                text = "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))
                yield self._piece(index, text, token_ids, self._logprobs(index, logprobs))
            case Finished(index):
                yield _end_piece(self._piece(index, "", [], None), event)
            case unreachable:
                assert_never(unreachable)

    def _whole_choice(self, choice: FoldedChoice) -> CompletionChoice:
        logprobs = self._logprobs(choice.index, choice.logprobs)
        piece = self._piece(choice.index, choice.content, choice.token_ids, logprobs)
        if piece.prompt_logprobs is UNSET:
            # null rather than absent, because the client's type does not know the field
            piece.prompt_logprobs = None
        piece.stop_reason = None
        return _end_piece(piece, choice.finished)

    def _piece(
        self, index: int, text: str, token_ids: list[int], logprobs: CompletionLogprobs | None
    ) -> CompletionChoice:
        """Returns the new part of a choice.

        The first part begins with the shown parts of the prompt.
        """
        piece = CompletionChoice(index, text, logprobs)
        if self._body.return_token_ids:
            piece.token_ids = token_ids
        if index not in self._begun:
            self._begun.add(index)
            self._put_prompt_before(piece)
        return piece

    def _put_prompt_before(self, piece: CompletionChoice) -> None:
        body, prompt = self._body, self._find_prompt(piece.index)
        if body.return_token_ids:
            piece.prompt_token_ids = prompt.token_ids
        if body.prompt_logprobs is not None:
            piece.prompt_logprobs = prompt.prompt_logprobs
        if body.echo:
            piece.text = prompt.text + piece.text
        if body.echo and body.logprobs is not None:
            echoed, _ = prompt.logprobs
            piece.logprobs = (
                echoed if piece.logprobs is None else join_logprobs(echoed, piece.logprobs)
            )

    def _logprobs(
        self, index: int, positions: Sequence[PositionLogprobs]
    ) -> CompletionLogprobs | None:
        if self._body.logprobs is None:
            return None
        if index not in self._num_chars:
            self._num_chars[index] = self._find_prompt(index).logprobs[1] if self._body.echo else 0
        shown, self._num_chars[index] = completion_logprobs(
            positions,
            self._model,
            self._text_of,
            self._num_chars[index],
            skip_special_tokens=self._body.skip_special_tokens is not False,
        )
        return shown


def _end_piece(piece: CompletionChoice, finished: Finished) -> CompletionChoice:
    piece.finish_reason = public_finish_reason(finished.reason, called=False)
    if finished.stop_reason is not None:
        piece.stop_reason = finished.stop_reason
    return piece


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/completions",
        prefixes=PREFIXES,
        summary="Continues a prompt.",
        endpoint=lambda services: services.make_generating(
            Completions(services.model, services.limits)
        ),
        choice=choose_for("generate"),
        bodies=(CompletionRequest,),
        answers=(Completion,),
        chunks=(Completion,),
    ),
)
