"""The one path from a validated request to a stream of events, for every endpoint, unary or streamed.

    EngineRequest ─submit─> StepOutput ─detokenizer─> text ─stop strings─> text ─parser─> deltas ─> Output, Finished

Stop strings are text, so they are found here and not in the engine: the choice ends with `stop`, the engine is told,
and the tokens it made beyond the match are not counted. Closing `Generation.events()` aborts what is unfinished.
"""

import hashlib
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar, assert_never

import msgspec

from ouzel.engine_client import EngineClient, EngineState
from ouzel.errors import ContextLengthExceeded, EngineFailed, EngineUnavailable, InvalidRequest
from ouzel.observability import Metrics
from ouzel.parsers.base import ContentDelta, Delta, Parser, ReasoningDelta, ToolCallDelta
from ouzel.prompts.render import Prompt, PromptRenderer
from ouzel.sampling import SamplingFields, SamplingParams
from ouzel.tokenizer.base import Detokenizer, Tokenizer
from ouzel.tokenizer.model_files import SamplingDefaults
from ouzel.tokenizer.stop_strings import StopStringMatcher
from ouzel.types import EngineInfo, EngineRequest, FinishReason, PositionLogprobs, StepOutput

__all__ = [  # the deltas and the engine's state are part of what this module gives
    "ContentDelta",
    "Delta",
    "EngineState",
    "Event",
    "Finished",
    "Generation",
    "GenerationRequest",
    "Output",
    "Prompt",
    "ReasoningDelta",
    "ServedModel",
    "ToolCallDelta",
    "Usage",
    "fit_max_tokens",
    "resolve_sampling",
    "system_fingerprint",
]

Number = TypeVar("Number", int, float)

DEFAULT_TEMPERATURE = 1.0
DEFAULT_TOP_K = 40  # while sampling, where neither the request nor generation_config.json says anything


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """Everything that turns requests for one model into text."""

    names: tuple[str, ...]  # the `model` values that clients may send; the first is the one in answers
    tokenizer: Tokenizer
    renderer: PromptRenderer
    sampling_defaults: SamplingDefaults
    engine: EngineClient
    make_parser: Callable[[], Parser]
    created: int  # unix seconds
    system_fingerprint: str


class GenerationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with every default filled in and every combination checked."""

    request_id: str
    prompt: Prompt
    params: SamplingParams
    n: int
    stop_strings: tuple[str, ...]
    include_stop_str_in_output: bool
    skip_special_tokens: bool
    continues_prompt: bool  # the text goes on where the prompt ends (completions), rather than starting anew (chat)
    priority: int
    cache_salt: str
    arrival_s: float  # time.perf_counter() when the request came in


class Output(msgspec.Struct, frozen=True):
    """New tokens of one choice; without deltas where their text is held back."""

    index: int
    deltas: list[Delta]
    token_ids: list[int]
    logprobs: list[PositionLogprobs]  # of the tokens that give text, when asked for


class Finished(msgspec.Struct, frozen=True):
    """The last event of one choice."""

    index: int
    reason: FinishReason
    stop_reason: int | str | None  # the request's stop token or stop string that ended it


Event = Output | Finished


class Usage(msgspec.Struct, frozen=True):
    """What a request used up to now, over all its choices."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int


def system_fingerprint(model_name: str, info: EngineInfo, version: str) -> str:
    """Changes when the same request might get another answer."""
    parts = (model_name, info.model_type, info.weights, info.precision, info.kv_cache_dtype, version)
    return "fp_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def fit_max_tokens(asked: int | None, *, num_prompt_tokens: int, max_model_len: int, param: str) -> int:
    """The limit of generated tokens: what was asked, or what the prompt leaves of `max_model_len`."""
    left = max_model_len - num_prompt_tokens  # at least 1: the renderer saw to it
    if asked is not None and asked > left:
        raise ContextLengthExceeded(
            f"{param} must be <= {left}, given {asked}: "
            f"the prompt has {num_prompt_tokens} tokens and max_model_len is {max_model_len}",
            param=param,
        )
    return left if asked is None else asked


def resolve_sampling(
    fields: SamplingFields,
    defaults: SamplingDefaults,
    *,
    max_tokens: int,
    num_logprobs: int | None,
    vocab_size: int,
) -> SamplingParams:
    """Each value from the request, else from generation_config.json, else our default."""
    if (fields.min_tokens or 0) > max_tokens:
        raise InvalidRequest(f"min_tokens must be <= {max_tokens}, given {fields.min_tokens}", param="min_tokens")
    temperature = _first(fields.temperature, defaults.temperature, DEFAULT_TEMPERATURE)
    top_k = _first(fields.top_k, defaults.top_k, DEFAULT_TOP_K if temperature > 0 else 0)
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=_first(fields.top_p, defaults.top_p, 1.0),
        top_k=max(top_k, 0),
        min_p=_first(fields.min_p, defaults.min_p, 0.0),
        repetition_penalty=_first(fields.repetition_penalty, defaults.repetition_penalty, 1.0),
        presence_penalty=_first(fields.presence_penalty, defaults.presence_penalty, 0.0),
        frequency_penalty=_first(fields.frequency_penalty, defaults.frequency_penalty, 0.0),
        seed=secrets.randbits(63) if fields.seed is None else fields.seed,
        min_tokens=fields.min_tokens or 0,
        stop_token_ids=_stop_token_ids(fields.stop_token_ids or [], vocab_size),
        ignore_eos=fields.ignore_eos or False,
        logit_bias=_logit_bias(fields.logit_bias or {}, vocab_size),
        num_logprobs=num_logprobs,
    )


def _first(*values: Number | None) -> Number:
    return next(value for value in values if value is not None)


def _stop_token_ids(token_ids: list[int], vocab_size: int) -> tuple[int, ...]:
    for position, token_id in enumerate(token_ids):
        if token_id >= vocab_size:
            path = f"stop_token_ids[{position}]"
            raise InvalidRequest(f"{path} must be <= {vocab_size - 1}, given {token_id}", param=path)
    return tuple(token_ids)


def _logit_bias(biases: dict[str, float], vocab_size: int) -> tuple[tuple[int, float], ...]:
    for token_id in biases:
        if not token_id.isdecimal() or int(token_id) >= vocab_size:
            raise InvalidRequest(
                f"logit_bias keys must be token ids from 0 to {vocab_size - 1}, given {token_id[:40]!r}",
                param="logit_bias",
            )
    return tuple((int(token_id), bias) for token_id, bias in biases.items())


class Generation:
    """One request on its way. `events()` is iterated once; usage and times grow meanwhile."""

    def __init__(self, request: GenerationRequest, model: ServedModel, metrics: Metrics) -> None:
        self.request = request
        self.model_name = model.names[0]
        self.ttft_s: float | None = None
        self.finish_reasons: list[str] = []  # in the order in which choices ended
        self._engine = model.engine
        self._eos_token_ids = model.tokenizer.eos_token_ids
        self._metrics = metrics
        self._choices = [_Choice(index, request, model) for index in range(request.n)]
        self._num_cached_tokens = 0

    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=len(self.request.prompt.token_ids),
            cached_tokens=self._num_cached_tokens,
            completion_tokens=sum(choice.num_tokens for choice in self._choices),
            reasoning_tokens=sum(choice.num_reasoning_tokens for choice in self._choices),
        )

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Each item is everything that is new; ends after the last choice's `Finished`."""
        reason_of_unfinished = FinishReason.ABORT
        try:
            async with aclosing(self._engine.submit(self._engine_request())) as steps:
                async for step in steps:
                    events = [event for output in step for event in self._advance(output)]
                    if events:
                        yield events
                    if len(self.finish_reasons) == self.request.n:
                        return
        except EngineFailed:
            reason_of_unfinished = FinishReason.ERROR
            raise
        finally:
            self._count(reason_of_unfinished)

    def _engine_request(self) -> EngineRequest:
        request = self.request
        return EngineRequest(
            request_id=request.request_id,
            prompt_token_ids=request.prompt.token_ids,
            params=request.params,
            eos_token_ids=self._eos_token_ids,
            n=request.n,
            priority=request.priority,
            cache_salt=request.cache_salt,
        )

    def _advance(self, output: StepOutput) -> list[Event]:
        choice = self._choices[output.index]
        if choice.is_finished:
            return []  # the engine ran on until it read the abort
        _raise_if_lost(output)
        self._num_cached_tokens = max(self._num_cached_tokens, output.num_cached_tokens)
        if output.token_ids:
            self._observe_token(choice)
        events = choice.advance(output)
        if events and isinstance(events[-1], Finished):
            self._finish(output, events[-1])
        return events

    def _finish(self, output: StepOutput, finished: Finished) -> None:
        self.finish_reasons.append(finished.reason.value)
        self._metrics.choice_finished(finished.reason.value)
        if output.timing is not None:
            timing = output.timing
            self._metrics.choice_timing(queue_s=timing.queue_s, prefill_s=timing.prefill_s, decode_s=timing.decode_s)
        if output.finish_reason is None and len(self.finish_reasons) < self.request.n:
            self._engine.abort(self.request.request_id, output.index)  # the last one is aborted by closing the stream

    def _observe_token(self, choice: "_Choice") -> None:
        now_s = time.perf_counter()
        if self.ttft_s is None:
            self.ttft_s = now_s - self.request.arrival_s
            self._metrics.first_token(self.ttft_s)
        elif choice.last_token_s:
            self._metrics.next_token(now_s - choice.last_token_s)
        choice.last_token_s = now_s

    def _count(self, reason_of_unfinished: FinishReason) -> None:
        usage = self.usage()
        self._metrics.request_ended(
            seconds=time.perf_counter() - self.request.arrival_s,
            num_prompt_tokens=usage.prompt_tokens,
            num_cached_tokens=usage.cached_tokens,
            num_generated_tokens=usage.completion_tokens,
        )
        num_unfinished = self.request.n - len(self.finish_reasons)
        for _ in range(num_unfinished):
            self.finish_reasons.append(reason_of_unfinished.value)
            self._metrics.choice_finished(reason_of_unfinished.value)


def _raise_if_lost(output: StepOutput) -> None:
    match output.finish_reason:
        case FinishReason.ERROR:
            raise EngineFailed(output.error or "the engine failed while it worked on this request")
        case FinishReason.ABORT:
            raise EngineUnavailable("the request was aborted: the server is shutting down", retry_after_s=1.0)
        case FinishReason.STOP | FinishReason.LENGTH | None:
            return
        case unreachable:
            assert_never(unreachable)


class _Choice:
    """One choice from token ids to deltas. Works token by token, so that nothing depends on how many came at once."""

    def __init__(self, index: int, request: GenerationRequest, model: ServedModel) -> None:
        self.num_tokens = 0
        self.num_reasoning_tokens = 0
        self.is_finished = False
        self.last_token_s = 0.0  # 0 before the first
        self._index = index
        self._shows_stop_token = request.include_stop_str_in_output or not request.skip_special_tokens
        self._detokenizer: Detokenizer = model.tokenizer.detokenizer(
            skip_special_tokens=request.skip_special_tokens,
            prompt_token_ids=request.prompt.token_ids if request.continues_prompt else (),
        )
        self._stop_token_ids = request.params.stop_token_ids
        self._stop = StopStringMatcher(request.stop_strings, request.include_stop_str_in_output)
        self._parser = model.make_parser()
        self._is_reasoning = False

    def advance(self, output: StepOutput) -> list[Event]:
        """The events of one output; the last is `Finished` when the engine or a stop string ended the choice."""
        text_ids = output.token_ids
        if output.stop_token_id is not None and not self._shows_stop_token:
            text_ids = text_ids[:-1]
        deltas: list[Delta] = []
        matched: str | None = None
        num_used = 0
        for token_id in text_ids:
            num_used += 1
            matched = self._feed(self._detokenizer.feed((token_id,)), deltas)
            self.num_reasoning_tokens += self._is_reasoning
            if matched is not None:
                break
        logprobs = output.logprobs[:num_used]
        token_ids = output.token_ids if matched is None else text_ids[:num_used]
        self.num_tokens += len(token_ids)
        if matched is not None or output.finish_reason is not None:
            return self._finish(output, matched, deltas, token_ids, logprobs)
        return [Output(self._index, _joined(deltas), token_ids, logprobs)] if token_ids else []

    def _feed(self, text: str, deltas: list[Delta]) -> str | None:
        """Adds what `text` gives; returns the stop string that ends the choice."""
        if not text:
            return None
        result = self._stop.feed(text)
        if result.text:
            new = self._parser.feed(result.text)
            deltas += new
            if new:
                self._is_reasoning = isinstance(new[-1], ReasoningDelta)
        return result.matched

    def _finish(
        self,
        output: StepOutput,
        matched: str | None,
        deltas: list[Delta],
        token_ids: list[int],
        logprobs: list[PositionLogprobs],
    ) -> list[Event]:
        self.is_finished = True
        if matched is None:
            matched = self._feed(self._detokenizer.finish(), deltas)
        if matched is None:
            held = self._stop.finish()
            deltas += self._parser.feed(held) if held else []
        if matched is None:
            assert output.finish_reason is not None
            asked_for = output.stop_token_id in self._stop_token_ids  # rather than the model's own end token
            finished = Finished(self._index, output.finish_reason, output.stop_token_id if asked_for else None)
        else:
            finished = Finished(self._index, FinishReason.STOP, matched)
        deltas += self._parser.finish(finished.reason)
        if not deltas and not token_ids:
            return [finished]
        return [Output(self._index, _joined(deltas), token_ids, logprobs), finished]


def _joined(deltas: Sequence[Delta]) -> list[Delta]:
    """Neighbours of one kind become one, so that tokens that came together go out together."""
    joined: list[Delta] = []
    for delta in deltas:
        match (joined[-1] if joined else None, delta):
            case (ContentDelta(before), ContentDelta(text)):
                joined[-1] = ContentDelta(before + text)
            case (ReasoningDelta(before), ReasoningDelta(text)):
                joined[-1] = ReasoningDelta(before + text)
            case _:
                joined.append(delta)
    return joined
