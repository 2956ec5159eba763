"""`FakeEngine` has no model: it answers from a script, one token per choice and step.

It serves tests, and measurements of the code around an engine.
"""

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.engine.state.adapters import Adapters
from ouzel.engine.state.reasoning_limit import ReasoningLimit
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import (
    FinishReason,
    PositionLogprobs,
    RequestTiming,
    StepOutput,
    TokenLogprob,
)

Script = Callable[[EngineRequest, int], int]
"""Computes the token of a choice at an output position: (request, position) -> token id."""


def echo(request: EngineRequest, position: int) -> int:
    """Repeats the prompt for ever."""
    return request.prompt_token_ids[position % len(request.prompt_token_ids)]


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True):
    step_s: Annotated[float, Meta(ge=0, description="Minimum duration of a step.")] = 0.0
    vocab_size: Annotated[int, Meta(ge=1)] = 1 << 20
    max_model_len: Annotated[int, Meta(ge=1)] = 4096
    max_num_seqs: Annotated[int, Meta(ge=1)] = 128
    failing_token_id: Annotated[
        int, Meta(description="A prompt with this token fails after its first output.")
    ] = -1
    fatal_token_id: Annotated[
        int, Meta(description="A prompt with this token kills the engine in its next step.")
    ] = -1
    hanging_token_id: Annotated[
        int, Meta(description="A prompt with this token makes its next step hang.")
    ] = -1
    hanging_s: Annotated[float, Meta(ge=0, description="Duration of a hanging step.")] = 1e6


def create_engine(options: dict[str, object]) -> "FakeEngine":
    """Makes the engine; an `EngineSpec` names this factory."""
    return FakeEngine(msgspec.convert(options, FakeOptions))


class _Choice:
    """The tokens of one choice."""

    def __init__(self, request: EngineRequest) -> None:
        budget = request.reasoning_budget
        self.token_ids: list[int] = []
        self._num_scripted = 0
        self._limit = None if budget is None else ReasoningLimit(budget)

    def take(self, request: EngineRequest, script: Script) -> int:
        """Returns the next token: the script's, unless the reasoning must end first.

        The script continues after the end of the reasoning.
        """
        if self._limit is not None and self._limit.due:
            token_id = self._limit.due[0]
        else:
            token_id = script(request, self._num_scripted)
            self._num_scripted += 1
        self.token_ids.append(token_id)
        if self._limit is not None:
            self._limit.note(self.token_ids)
        return token_id


class FakeEngine:
    """Implements `Engine` without a runner: each unfinished choice gets one scripted token a
    step.
    """

    def __init__(self, options: FakeOptions | None = None, script: Script = echo) -> None:
        self._options = options or FakeOptions()
        self._script = script
        self._requests: dict[str, EngineRequest] = {}
        self._choices: dict[tuple[str, int], _Choice] = {}  # choices by request id and index
        self._outputs: list[StepOutput] = []
        self.adapters = Adapters(None, 0)

    @property
    def info(self) -> EngineInfo:
        options = self._options
        return EngineInfo(
            backend="fake",
            model_type="fake",
            device="none",
            weights="none",
            precision="none",
            kv_cache_dtype="none",
            vocab_size=options.vocab_size,
            max_model_len=options.max_model_len,
            block_size=options.max_model_len,  # one block for each choice
            num_blocks=options.max_num_seqs,
            max_num_seqs=options.max_num_seqs,
            max_num_batched_tokens=options.max_num_seqs,
            load_s=0.0,
        )

    def add(self, request: EngineRequest) -> None:
        self._requests[request.request_id] = request
        self._choices.update(
            {(request.request_id, index): _Choice(request) for index in range(request.n)}
        )

    def abort(self, request_id: str, index: int | None = None) -> None:
        for key in [
            key for key in self._choices if key[0] == request_id and index in (None, key[1])
        ]:
            self._give(key, [], FinishReason.ABORT)

    def step(self) -> list[StepOutput]:
        time.sleep(self._options.step_s)
        for key in list(self._choices):
            self._advance(key)
        outputs, self._outputs = self._outputs, []
        return outputs

    def has_unfinished(self) -> bool:
        return bool(self._choices or self._outputs)

    def use_idle_time(self) -> bool:
        return False

    def stats(self) -> EngineStats:
        return EngineStats(
            num_running=len(self._choices),
            num_waiting=0,
            num_used_blocks=len(self._choices),
            num_blocks=self._options.max_num_seqs,
            num_prefix_query_tokens=0,
            num_prefix_hit_tokens=0,
            num_preemptions=0,
        )

    def close(self) -> None:
        self._choices.clear()

    def _advance(self, key: tuple[str, int]) -> None:
        request, choice = self._requests[key[0]], self._choices[key]
        is_first = not choice.token_ids
        if self._options.fatal_token_id in request.prompt_token_ids:
            raise RuntimeError("scripted death of the engine")
        if self._options.hanging_token_id in request.prompt_token_ids:
            time.sleep(self._options.hanging_s)
        if key[1] == 0 and is_first and request.params.num_prompt_logprobs is not None:
            self._give(
                key,
                [],
                None,
                prompt_logprobs=_certain_prompt(request, request.params.num_prompt_logprobs),
            )
        if not is_first and self._options.failing_token_id in request.prompt_token_ids:
            self._give(key, [], FinishReason.ERROR, error="scripted failure")
            return
        if request.params.max_tokens == 0:
            self._give(key, [], FinishReason.LENGTH)
            return
        token_id = choice.take(request, self._script)
        self._give(key, [token_id], self._finish_reason(request, token_id, len(choice.token_ids)))

    def _finish_reason(
        self, request: EngineRequest, token_id: int, num_output_tokens: int
    ) -> FinishReason | None:
        params = request.params
        eos_token_ids = () if params.ignore_eos else request.eos_token_ids
        if (
            token_id in (*params.stop_token_ids, *eos_token_ids)
            and num_output_tokens > params.min_tokens
        ):
            return FinishReason.STOP
        num_tokens = len(request.prompt_token_ids) + num_output_tokens
        if num_output_tokens >= params.max_tokens or num_tokens >= self._options.max_model_len:
            return FinishReason.LENGTH
        return None

    def _give(
        self,
        key: tuple[str, int],
        token_ids: list[int],
        reason: FinishReason | None,
        *,
        error: str | None = None,
        prompt_logprobs: list[PositionLogprobs] | None = None,
    ) -> None:
        params = self._requests[key[0]].params
        logprobs = [
            _certain(token_id, params.num_logprobs, params.logprob_token_ids)
            for token_id in token_ids
            if params.num_logprobs is not None
        ]
        is_first_result = (
            len(self._choices[key].token_ids) == 1 if token_ids else reason is FinishReason.LENGTH
        )
        self._outputs.append(
            StepOutput(
                request_id=key[0],
                index=key[1],
                token_ids=token_ids,
                logprobs=logprobs,
                num_cached_tokens=0,
                prompt_logprobs=prompt_logprobs or [],
                finish_reason=reason,
                stop_token_id=token_ids[-1] if reason is FinishReason.STOP else None,
                error=error,
                timing=RequestTiming(queue_s=0.0, prefill_s=0.0) if is_first_result else None,
            )
        )
        if reason is not None:
            del self._choices[key]
            if not any(request_id == key[0] for request_id, _ in self._choices):
                del self._requests[key[0]]


def _certain(token_id: int, num_top: int, token_ids: tuple[int, ...] = ()) -> PositionLogprobs:
    """Gives the scripted token probability 1; the next ids are the further alternatives."""
    shown = dict.fromkeys((*range(token_id, token_id + num_top), *token_ids))
    top = tuple(TokenLogprob(each, 0.0 if each == token_id else -99.0) for each in shown)
    return PositionLogprobs(TokenLogprob(token_id, 0.0), top)


def _certain_prompt(request: EngineRequest, num_top: int) -> list[PositionLogprobs]:
    return [
        msgspec.structs.replace(_certain(token_id, num_top), rank=1)
        for token_id in request.prompt_token_ids[1:]
    ]
