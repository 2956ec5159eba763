"""Writes answers in LMI's own schema: a text, its tokens one by one, and details of the generation.

Every generated token has exactly one entry; hidden tokens at the end have an empty text.
"""

from collections.abc import Sequence
from typing import TypeVar, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.http.framing import Framing
from ouzel.api.lmi.token_texts import TokenTexts
from ouzel.api.lmi.tokens import ShownToken, Token, TokenWriter
from ouzel.generation import (
    ContentDelta,
    Event,
    Finished,
    GenerationRequest,
    Output,
    PromptScored,
    ReasoningDelta,
    ServedModel,
    Usage,
)
from ouzel.types.step_output import FinishReason


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a request that decide which fields its answer has."""

    is_batch: bool  # whether the answer is a list
    is_stream: bool
    is_tgi: bool
    n: int  # choices of each prompt
    is_beam_search: bool  # whether the outputs come best first
    has_details: bool
    shows_prompt: bool  # whether the prompt stands before the text
    num_top_tokens: int
    skips_special_tokens: bool

    @property
    def needs_logprobs(self) -> bool:
        return self.has_details or self.is_stream or self.n > 1


class SequenceDetails(msgspec.Struct):
    finish_reason: str
    generated_tokens: int
    tokens: list[Token]
    generated_text: str | UnsetType = UNSET  # set in best_of_sequences
    top_tokens: list[list[Token]] | UnsetType = UNSET


Kind = TypeVar("Kind", bound=SequenceDetails)


class Details(SequenceDetails):
    inputs: str | UnsetType = UNSET
    prefill: list[Token] | UnsetType = UNSET
    best_of_sequences: list[SequenceDetails] | UnsetType = UNSET
    beam_sequences: list[SequenceDetails] | UnsetType = UNSET


class Generated(msgspec.Struct):
    generated_text: str
    details: Details | UnsetType = UNSET


class StreamDetails(msgspec.Struct):
    finish_reason: str
    generated_tokens: int
    inputs: str
    prefill: list[Token] | UnsetType = UNSET
    input_length: int | UnsetType = UNSET  # TGI's field


class Line(msgspec.Struct):
    """A line of a stream: one token; in the last line also the text and the details."""

    token: Token | None
    top_tokens: list[Token] | UnsetType = UNSET
    generated_text: str | UnsetType = UNSET
    details: StreamDetails | UnsetType = UNSET


class Choice:
    """Collects the output of one sequence."""

    def __init__(self, texts: TokenTexts) -> None:
        self.tokens: list[ShownToken] = []
        self.finished: Finished | None = None
        self._texts = texts

    def take(self, event: Event) -> list[ShownToken]:
        """Takes an event, and returns the tokens whose text is now complete."""
        match event:
            case PromptScored():
                return []  # it belongs to no choice
            case Output(deltas=deltas, logprobs=logprobs):
                text = "".join(
                    delta.text
                    for delta in deltas
                    if isinstance(delta, ContentDelta | ReasoningDelta)
                )
                new = self._texts.feed(text, logprobs)
            case Finished(hidden_logprobs=hidden):
                self.finished = event
                new = self._texts.finish(hidden)
            case unreachable:
                assert_never(unreachable)
        self.tokens += new
        return new

    @property
    def text(self) -> str:
        return self._texts.text

    @property
    def finish_reason(self) -> str:
        assert self.finished is not None
        if self.finished.reason is FinishReason.LENGTH:
            return "length"
        return "eos_token" if self.finished.stop_reason is None else "stop_sequence"

    @property
    def mean_logprob(self) -> float:
        return sum(token.position.sampled.logprob for token in self.tokens) / max(
            len(self.tokens), 1
        )


class StandardAnswer:
    """Writes the answers of LMI's own schema."""

    def __init__(
        self,
        shape: Shape,
        requests: Sequence[GenerationRequest],
        texts: Sequence[str],
        model: ServedModel,
        framing: Framing,
    ) -> None:
        self.is_stream = shape.is_stream
        self.framing = framing
        self._shape = shape
        self._requests = requests
        self._texts = texts  # texts of the prompts, as in the body
        # tokens of prompts, by the index of the prompt's first choice
        self._prefills: dict[int, list[Token]] = {}
        self._writer = TokenWriter(model, is_tgi=shape.is_tgi, num_top_tokens=shape.num_top_tokens)
        self._choices = [
            Choice(TokenTexts(model, request, skips_special_tokens=shape.skips_special_tokens))
            for request in requests
            for _ in range(shape.n)
        ]

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[Line]:
        """Returns lines of the only choice. The last line has the text and the details."""
        lines: list[Line] = []
        for event in events:
            (choice,) = self._choices
            self._note_prompt(event)
            lines += [self._line(token) for token in choice.take(event)]
            if choice.finished:
                lines = lines or [Line(None)]
                self._complete(lines[-1], choice, usage)
        return lines

    def last_chunks(self, usage: Usage) -> list[Line]:
        return []

    def whole(self, events: Sequence[Event], usage: Usage) -> object:
        for event in events:
            self._note_prompt(event)
            self._choices[event.index].take(event)
        answers = [self._generated(position) for position in range(len(self._texts))]
        return answers if self._shape.is_batch or self._shape.is_tgi else answers[0]

    def _note_prompt(self, event: Event) -> None:
        if isinstance(event, PromptScored):
            prompt = self._requests[event.index // self._shape.n].prompt
            self._prefills[event.index] = self._writer.prefill(prompt.token_ids[0], event.logprobs)

    def _line(self, token: ShownToken) -> Line:
        top_tokens = self._writer.top_tokens(token) if self._shape.num_top_tokens else UNSET
        return Line(self._writer.token(token), top_tokens)

    def _complete(self, line: Line, choice: Choice, usage: Usage) -> None:
        line.generated_text = self._text(choice, 0)
        if self._shape.has_details:
            line.details = StreamDetails(choice.finish_reason, len(choice.tokens), self._texts[0])
            line.details.prefill = self._prefills.get(0, UNSET)
            if self._shape.is_tgi:
                line.details.input_length = usage.prompt_tokens

    def _generated(self, position: int) -> Generated:
        n = self._shape.n
        choices = self._choices[position * n : (position + 1) * n]
        if not self._shape.is_beam_search:
            choices = sorted(choices, key=lambda choice: -choice.mean_logprob)
        best, *others = choices
        answer = Generated(self._text(best, position))
        if self._shape.has_details or others:
            answer.details = self._sequence(best, Details)
            answer.details.inputs = self._texts[position]
            answer.details.prefill = self._prefills.get(position * n, UNSET)
            shown_others = [self._other(choice, position) for choice in others] or UNSET
            if self._shape.is_beam_search:
                answer.details.beam_sequences = shown_others
            else:
                answer.details.best_of_sequences = shown_others
        return answer

    def _other(self, choice: Choice, position: int) -> SequenceDetails:
        details = self._sequence(choice, SequenceDetails)
        details.generated_text = self._text(choice, position)
        return details

    def _sequence(self, choice: Choice, kind: type[Kind]) -> Kind:
        tokens = [self._writer.token(token) for token in choice.tokens]
        details = kind(choice.finish_reason, len(tokens), tokens)
        if self._shape.num_top_tokens:
            details.top_tokens = [self._writer.top_tokens(token) for token in choice.tokens]
        return details

    def _text(self, choice: Choice, position: int) -> str:
        return (self._texts[position] if self._shape.shows_prompt else "") + choice.text
