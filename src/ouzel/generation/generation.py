"""Runs one request through the engine, for every endpoint, unary or streamed."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from typing import assert_never

import msgspec

from ouzel.engine_client import Engines
from ouzel.engine_client.background import in_background
from ouzel.errors import EngineFailed, EngineUnavailable, InvalidRequest, Overloaded
from ouzel.generation.best_of import BestOf
from ouzel.generation.choice import Choice
from ouzel.generation.phases import add_phases
from ouzel.generation.records import (
    Durations,
    Event,
    Finished,
    GenerationRequest,
    PromptScored,
    Usage,
)
from ouzel.generation.served_model import ServedModel
from ouzel.observability import Metrics, span_in_scope
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest, ImageInput, MediaInput, SoundInput
from ouzel.types.step_output import FinishReason, PositionLogprobs, RequestTiming, StepOutput

# By then the engine has given up the work that keeps it busy: the default of --grammar-timeout-s.
_RETRY_AFTER_S = 5.0

_numbers = count()

logger = logging.getLogger(__name__)


class Generation:
    """Runs one request. `events()` is iterated once; usage and times grow meanwhile."""

    def __init__(
        self,
        request: GenerationRequest,
        model: ServedModel,
        metrics: Metrics,
        *,
        key_id: str | None,
    ) -> None:
        """`key_id` identifies the API key of the request; None if no keys are required."""
        self.request = request
        self.model_name = model.names[0]
        # set when the engine has the request and can no longer refuse it
        self.accepted = asyncio.Event()
        self.ttft_s: float | None = None
        self.finish_reasons: list[str] = []  # ordered by the ends of the choices
        self._engine = model.engine
        self._engine_id = _new_engine_id(request)
        self._grammar = request.grammar
        # a reason for each format that is not honoured
        self.dropped_formats = request.dropped_formats
        # tells whether the response's head, which reports dropped formats, is still to be sent
        self.can_tell_of_dropped = _cannot_tell
        self._eos_token_ids = (*model.tokenizer.eos_token_ids, *request.prompt.end_token_ids)
        self._metrics = metrics
        # Nobody waits for such a request: its times would hide the times of users.
        self._is_in_background = in_background.get()
        self._counts = metrics.of_engine(0)  # counters of engine 0, later of the request's engine
        self._cache_salt = model.cache_salt(key_id, request.cache_salt)
        self._adapter = model.adapter if request.adapter is None else request.adapter
        self._choices = [Choice(index, request, model) for index in range(request.best_of)]
        self._best_of = BestOf(request) if request.best_of > request.n else None
        self._num_cached_tokens = 0
        scores_prompt = request.params.num_prompt_logprobs is not None
        # None: there are no logprobs to send, or they have been sent
        self._prompt_logprobs: list[PositionLogprobs] | None = [] if scores_prompt else None
        self.timing: RequestTiming | None = None  # times of the first result
        self._submitted_s = 0.0
        self._last_token_s = 0.0  # time of the last token of any choice; 0 before the first

    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=len(self.request.prompt.token_ids),
            cached_tokens=self._num_cached_tokens,
            completion_tokens=sum(choice.num_tokens for choice in self._choices),
            reasoning_tokens=sum(choice.num_reasoning_tokens for choice in self._choices),
            accepted_prediction_tokens=sum(choice.num_accepted_tokens for choice in self._choices),
            rejected_prediction_tokens=sum(choice.num_rejected_tokens for choice in self._choices),
            image_tokens=self._count_tokens(ImageInput),
            audio_tokens=self._count_tokens(SoundInput),
            durations=None if self.timing is None else self._durations(self.timing),
        )

    def _count_tokens(self, kind: type[MediaInput]) -> int:
        """Counts the tokens of the prompt that stand for images, or for sounds."""
        inputs = (each for each in self.request.prompt.images if isinstance(each, kind))
        return sum(num for each in inputs for _, num in each.runs)

    def _durations(self, timing: RequestTiming) -> Durations:
        output_s = self._last_token_s - (self._submitted_s + timing.queue_s + timing.prefill_s)
        return Durations(timing.prefill_s, max(output_s, 0.0))

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Yields lists of all new events; ends after the last choice's `Finished`."""
        reason_of_unfinished = FinishReason.ERROR
        self._submitted_s = time.perf_counter()
        try:
            async with aclosing(self._steps()) as steps:
                async for step in steps:
                    events = [event for output in step for event in self._advance(output)]
                    if events:
                        yield events
                    if self._is_complete:
                        break
                    for output in step:  # after the events that came with it
                        if not self._choices[output.index].is_finished:
                            raise_if_lost(output, self._engine)
        except (GeneratorExit, asyncio.CancelledError):
            reason_of_unfinished = FinishReason.ABORT
            raise
        except InvalidRequest:
            reason_of_unfinished = FinishReason.REFUSED
            raise
        except Overloaded:
            reason_of_unfinished = FinishReason.OVERLOADED
            raise
        finally:
            self._count_unfinished(reason_of_unfinished)
            if self.timing is not None:
                self._trace(self.timing)
                if self._is_complete and not self._is_in_background:
                    self._observe_request(self.timing)

    async def _steps(self) -> AsyncGenerator[list[StepOutput], None]:
        """Yields the engine's results; tries again without the grammar if the engine refuses it."""
        is_refused = True
        while is_refused:
            is_refused = False
            submitted = self._engine.submit(
                self._engine_request(), self._note_engine, self.accepted
            )
            async with aclosing(submitted) as steps:
                async for step in steps:
                    is_refused = self._drops_grammar(step)
                    if is_refused:
                        break
                    yield step

    def _drops_grammar(self, step: list[StepOutput]) -> bool:
        """Drops a refused grammar if the client can still be told; returns whether it did."""
        grammar = self._grammar
        if grammar is None or not self.request.may_drop_grammar:
            return False
        refusal = next(
            (output for output in step if output.finish_reason is FinishReason.REFUSED), None
        )
        if refusal is None or refusal.error_param != grammar.param:
            return False
        if any(choice.num_tokens for choice in self._choices) or not self.can_tell_of_dropped():
            return False
        reason = refusal.error or "the engine refused this format"
        request_id = self.request.request_id
        logger.warning(
            "request %s: answered without a format that the engine refused: %s", request_id, reason
        )
        self.dropped_formats = (*self.dropped_formats, reason)
        self._grammar = None
        self._engine_id = _new_engine_id(self.request)
        return True

    def _note_engine(self, number: int) -> None:
        self._counts = self._metrics.of_engine(number)

    @property
    def _is_complete(self) -> bool:
        """Tells whether every choice has come to an end of its own."""
        return all(choice.is_finished for choice in self._choices)

    def _engine_request(self) -> EngineRequest:
        request = self.request
        return EngineRequest(
            request_id=self._engine_id,
            prompt_token_ids=request.prompt.token_ids,
            params=self._params(),
            eos_token_ids=self._eos_token_ids,
            n=request.best_of,
            priority=request.priority,
            cache_salt=self._cache_salt,
            grammar=self._grammar,
            reasoning_budget=request.reasoning_budget,
            images=request.prompt.images,
            speculation=request.speculation,
            adapter=self._adapter,
        )

    def _params(self) -> SamplingParams:
        params = self.request.params
        if self._best_of is None or params.num_logprobs is not None:
            return params
        return msgspec.structs.replace(
            params, num_logprobs=0
        )  # the comparison of samples needs them

    def _advance(self, output: StepOutput) -> list[Event]:
        choice = self._choices[output.index]
        if choice.is_finished:
            return []  # the engine continued until it read the abort
        if output.finish_reason not in (FinishReason.STOP, FinishReason.LENGTH, None):
            output = msgspec.structs.replace(output, finish_reason=None)
        self._note_prompt(output)
        if output.token_ids:
            self._observe_token(choice)
        num_tokens_before = choice.num_tokens
        events = choice.advance(output)
        self._counts.tokens_generated(choice.num_tokens - num_tokens_before)
        if self._best_of is not None:
            self._best_of.note(
                output.index, output.logprobs[: choice.num_tokens - num_tokens_before]
            )
        if events and isinstance(events[-1], Finished):
            self._finish(output, events[-1])
        # The engine sends all logprobs of the prompt before the first token.
        if events and self._prompt_logprobs is not None:
            events.insert(0, PromptScored(0, self._prompt_logprobs))
            self._prompt_logprobs = None
        return events if self._best_of is None else self._best_of.hold(events)

    def _note_prompt(self, output: StepOutput) -> None:
        self._num_cached_tokens = max(self._num_cached_tokens, output.num_cached_tokens)
        if self.timing is None and output.timing is not None:
            self.timing = output.timing
            self._counts.prompt_computed(
                num_prompt_tokens=len(self.request.prompt.token_ids),
                num_cached_tokens=self._num_cached_tokens,
            )
        if self._prompt_logprobs is not None:
            self._prompt_logprobs += output.prompt_logprobs

    def _finish(self, output: StepOutput, finished: Finished) -> None:
        self.finish_reasons.append(finished.reason.value)
        self._counts.choice_finished(finished.reason.value)
        if output.finish_reason is None:
            self._engine.abort(self._engine_id, output.index)

    def _observe_token(self, choice: Choice) -> None:
        now_s = time.perf_counter()
        if self.ttft_s is None:
            self.ttft_s = now_s - self.request.arrival_s
            if not self._is_in_background:
                self._counts.first_token(self.ttft_s)
        elif choice.last_token_s and not self._is_in_background:
            self._counts.next_token(now_s - choice.last_token_s)
        choice.first_token_s = choice.first_token_s or now_s
        choice.last_token_s = self._last_token_s = now_s

    def _count_unfinished(self, reason: FinishReason) -> None:
        for _ in range(len(self._choices) - len(self.finish_reasons)):
            self.finish_reasons.append(reason.value)
            self._counts.choice_finished(reason.value)

    def _trace(self, timing: RequestTiming) -> None:
        span = span_in_scope.get()
        if span is not None:
            own = {"gen_ai.response.id": self.request.request_id}
            add_phases(
                span,
                timing,
                submitted_s=self._submitted_s,
                last_token_s=self._last_token_s,
                attributes=own,
            )

    def _observe_request(self, timing: RequestTiming) -> None:
        usage, choices = self.usage(), self._choices
        decode_s = sum(choice.last_token_s - choice.first_token_s for choice in choices)
        self._counts.request_completed(
            e2e_s=time.perf_counter() - self.request.arrival_s,
            queue_s=timing.queue_s,
            prefill_s=timing.prefill_s,
            decode_s=self._last_token_s - min(choice.first_token_s for choice in choices),
            token_s=decode_s / max(usage.completion_tokens - len(choices), 1),
            num_prompt_tokens=usage.prompt_tokens,
            num_generated_tokens=usage.completion_tokens,
            n=self.request.n,
            max_tokens=self.request.params.max_tokens,
        )


def _cannot_tell() -> bool:
    return False


def _new_engine_id(request: GenerationRequest) -> str:
    """Returns a new id each time: the engine may still be ending the request's former attempt."""
    return f"{request.request_id}.{next(_numbers)}"


def raise_if_lost(output: StepOutput, engine: Engines) -> None:
    """Raises the error in a final output of the engine, if it has one."""
    match output.finish_reason:
        case FinishReason.REFUSED:
            raise InvalidRequest(
                output.error or "the engine refused this request", param=output.error_param
            )
        case FinishReason.OVERLOADED:
            raise Overloaded(
                output.error or "the engine is overloaded", retry_after_s=_RETRY_AFTER_S
            )
        case FinishReason.ERROR:
            raise EngineFailed(output.error or "the engine failed on this request")
        case FinishReason.ABORT:
            raise EngineUnavailable(f"the request was aborted: {engine.reason}", retry_after_s=1.0)
        case FinishReason.STOP | FinishReason.LENGTH | None:
            return
        case unreachable:
            assert_never(unreachable)
