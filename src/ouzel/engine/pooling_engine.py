"""An engine of an encoder makes vectors of texts, whole texts in each step.

Rules
1. Each text of a request is a choice of it, and ends by itself, in the step that computes it.
2. A step takes the text that goes first (by priority, then arrival), and besides it those of the same priority that are
   nearest to it in length, within `max_num_batched_tokens` and `max_num_seqs`: texts of one length are padded by
   nothing. One that is longer than a step runs alone.
3. A fault of the forward pass ends the texts in the batch. The engine goes on.
"""

import logging
import time
from collections.abc import Iterator
from itertools import accumulate, count

import numpy as np

from ouzel.engine.base import PoolingBatch, PoolingRunner
from ouzel.engine.state.adapters import Adapters
from ouzel.engine.waiting_texts import WaitingText, WaitingTexts
from ouzel.errors import STOPS
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, RequestTiming, StepOutput

logger = logging.getLogger(__name__)


class PoolingEngine:
    """Implements `Engine` over any `PoolingRunner`."""

    def __init__(self, runner: PoolingRunner) -> None:
        self._runner = runner
        self.adapters = Adapters(None, 0)
        self._waiting = WaitingTexts()
        self._outputs: list[StepOutput] = []
        self._arrivals = count()
        self._num_running = 0  # in the last step

    @property
    def info(self) -> EngineInfo:
        return self._runner.info

    def add(self, request: EngineRequest) -> None:
        if request.request_id in self._waiting:
            raise ValueError(f"request_id {request.request_id!r} is in use")
        fault = next(_faults_of(request, self.info), None)
        if fault is not None:
            self._outputs += [
                _ended(request.request_id, index, FinishReason.REFUSED, fault)
                for index in range(request.n)
            ]
            return
        for text in _texts_of(request, next(self._arrivals)):
            self._waiting.add(text)

    def abort(self, request_id: str, index: int | None = None) -> None:
        gone = self._waiting.take_request(request_id, index)
        self._outputs += [_ended(request_id, text.index, FinishReason.ABORT) for text in gone]

    def step(self) -> list[StepOutput]:
        info = self.info
        batch = self._waiting.take_batch(
            max_tokens=info.max_num_batched_tokens, max_texts=info.max_num_seqs
        )
        self._num_running = len(batch)
        if batch:
            try:
                self._compute(batch)
            except STOPS:
                raise
            except (
                BaseException
            ) as error:  # a fault of the device or of ours: this batch is lost, the engine is not
                logger.exception("step failed with %d texts", len(batch))
                reason = f"the model step failed: {error}"
                self._outputs += [
                    _ended(each.request_id, each.index, FinishReason.ERROR, reason)
                    for each in batch
                ]
        outputs, self._outputs = self._outputs, []
        return outputs

    def has_unfinished(self) -> bool:
        return bool(self._waiting or self._outputs)

    def use_idle_time(self) -> bool:
        return False

    def stats(self) -> EngineStats:
        return EngineStats(
            num_running=self._num_running if self._waiting else 0,
            num_waiting=len(self._waiting),
            num_used_blocks=0,
            num_blocks=0,
            num_prefix_query_tokens=0,
            num_prefix_hit_tokens=0,
            num_preemptions=0,
        )

    def close(self) -> None:
        self._runner.close()

    def _compute(self, batch: list[WaitingText]) -> None:
        begin_s = time.monotonic()
        lens = [len(text.token_ids) for text in batch]
        vectors = self._runner.run(
            PoolingBatch(
                token_ids=np.concatenate([np.array(text.token_ids, np.int64) for text in batch]),
                begins=np.array([0, *accumulate(lens)], np.int32),
                second_begins=np.array([text.second_begin for text in batch], np.int32),
            )
        )
        duration_s = time.monotonic() - begin_s
        for text, vector in zip(batch, vectors, strict=True):
            timing = RequestTiming(queue_s=begin_s - text.added_at, prefill_s=duration_s)
            self._outputs.append(
                StepOutput(
                    request_id=text.request_id,
                    index=text.index,
                    token_ids=[],
                    logprobs=[],
                    num_cached_tokens=0,
                    finish_reason=FinishReason.STOP,
                    timing=timing,
                    vector=vector.astype("<f4").tobytes(),
                )
            )


def _texts_of(request: EngineRequest, arrival: int) -> Iterator[WaitingText]:
    assert request.pooling is not None
    added_at = time.monotonic()
    lens = request.pooling.text_lens or (len(request.prompt_token_ids),)
    seconds = request.pooling.second_begins or lens
    ends = list(accumulate(lens))
    for index, (end, length, second_begin) in enumerate(zip(ends, lens, seconds, strict=True)):
        token_ids = request.prompt_token_ids[end - length : end]
        order = (request.priority, arrival, index)
        yield WaitingText(request.request_id, index, order, token_ids, second_begin, added_at)


def _faults_of(request: EngineRequest, info: EngineInfo) -> Iterator[str]:
    """Says why the request cannot run; the server checks all of this earlier, embedders may not."""
    pooling = request.pooling
    if pooling is None or pooling.token_ids:
        yield "this model makes no tokens"
        return
    lens = pooling.text_lens or (len(request.prompt_token_ids),)
    if len(lens) != request.n or sum(lens) != len(request.prompt_token_ids):
        yield f"the texts' lengths must be {request.n} that come to {len(request.prompt_token_ids)} tokens"
    if pooling.second_begins and len(pooling.second_begins) != request.n:
        yield f"there must be {request.n} begins of second texts, given {len(pooling.second_begins)}"
    if min(lens, default=0) < 1:
        yield "a text is empty"
    if max(lens, default=0) > info.max_model_len:
        yield f"a text has {max(lens)} tokens, max_model_len is {info.max_model_len}"
    if any(not 0 <= token_id < info.vocab_size for token_id in request.prompt_token_ids):
        yield f"the texts must be token ids in [0, {info.vocab_size})"


def _ended(
    request_id: str, index: int, reason: FinishReason, error: str | None = None
) -> StepOutput:
    return StepOutput(
        request_id=request_id,
        index=index,
        token_ids=[],
        logprobs=[],
        num_cached_tokens=0,
        finish_reason=reason,
        error=error,
    )
