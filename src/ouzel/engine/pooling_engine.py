"""Computes vectors or sounds of texts, whole texts in each step.

Rules
1. Each text of a request is a choice. It ends by itself, in the step that computes it.
2. A step takes the first text by priority, then arrival. It adds texts of the same priority whose
   lengths are nearest, within `max_num_batched_tokens` and `max_num_seqs`: texts of one length need
   no padding. A text longer than a step runs alone.
3. A fault in the forward pass ends the texts of the batch. The engine continues.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from math import inf

import numpy as np

from ouzel.engine.base import PoolingBatch, PoolingRunner
from ouzel.engine.state.adapters import Adapters
from ouzel.engine.waiting_texts import WaitingText, WaitingTexts
from ouzel.errors import STOPS
from ouzel.pooling import Pooling, VectorForm, Voice
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, RequestTiming, StepOutput

logger = logging.getLogger(__name__)

_WEIGHT_ERROR = 1e-3  # largest difference of the sum of weights from 1: they are floats


class PoolingEngine:
    """Implements `Engine` on any `PoolingRunner`."""

    def __init__(self, runner: PoolingRunner) -> None:
        self._runner = runner
        self.adapters = Adapters(None, 0)
        self._waiting = WaitingTexts()
        self._outputs: list[StepOutput] = []
        self._arrivals = count()
        self._num_running = 0  # number of texts in the last step

    @property
    def info(self) -> EngineInfo:
        return self._runner.info

    def add(self, request: EngineRequest) -> None:
        if request.request_id in self._waiting:
            raise ValueError(f"request_id {request.request_id!r} is in use")
        fault = next(_find_faults(request, self.info), None)
        if fault is not None:
            self._outputs += [
                _make_final_output(request.request_id, index, FinishReason.REFUSED, fault)
                for index in range(request.n)
            ]
            return
        for text in _split_texts(request, next(self._arrivals)):
            self._waiting.add(text)

    def abort(self, request_id: str, index: int | None = None) -> None:
        gone = self._waiting.take_request(request_id, index)
        self._outputs += [
            _make_final_output(request_id, text.index, FinishReason.ABORT) for text in gone
        ]

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
            # A fault of the device or of our code: the batch is lost, the engine is not.
            except BaseException as error:
                logger.exception("step failed with %d texts", len(batch))
                reason = f"the model step failed: {error}"
                self._outputs += [
                    _make_final_output(each.request_id, each.index, FinishReason.ERROR, reason)
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
                tasks=np.array([text.task for text in batch], np.int32),
                visible_lens=np.array(
                    [text.num_visible or len(text.token_ids) for text in batch], np.int32
                ),
                forms=tuple(text.form for text in batch),
                voices=() if self.info.speech is None else tuple(text.voice for text in batch),
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


def _split_texts(request: EngineRequest, arrival: int) -> Iterator[WaitingText]:
    assert request.pooling is not None
    added_at = time.monotonic()
    lens = request.pooling.text_lens or (len(request.prompt_token_ids),)
    seconds = request.pooling.second_begins or lens
    tasks = request.pooling.tasks or (0,) * len(lens)
    visible = request.pooling.visible_lens or lens
    ends = list(accumulate(lens))
    for index, (end, length) in enumerate(zip(ends, lens, strict=True)):
        yield WaitingText(
            request.request_id,
            index,
            (request.priority, arrival, index),
            request.prompt_token_ids[end - length : end],
            seconds[index],
            added_at,
            tasks[index],
            request.pooling.form,
            visible[index],
            request.pooling.voice,
        )


def _find_faults(request: EngineRequest, info: EngineInfo) -> Iterator[str]:
    """Yields the reasons why the request cannot run.

    The server checks all of them earlier; programs that embed the engine may not.
    """
    pooling = request.pooling
    if pooling is None or pooling.token_ids:
        yield "this model makes no tokens"
        return
    lens = pooling.text_lens or (len(request.prompt_token_ids),)
    if len(lens) != request.n or sum(lens) != len(request.prompt_token_ids):
        yield (
            f"text_lens must be {request.n} lengths with a sum of "
            f"{len(request.prompt_token_ids)}, given {len(lens)} with a sum of {sum(lens)}"
        )
    if pooling.second_begins and len(pooling.second_begins) != request.n:
        yield (f"second_begins must have {request.n} values, given {len(pooling.second_begins)}")
    yield from _find_task_faults(pooling.tasks, request.n, info.num_tasks)
    yield from _find_form_faults(pooling, lens, info.forms)
    yield from _find_voice_faults(pooling.voice, info)
    if min(lens, default=0) < 1:
        yield "a text is empty"
    if max(lens, default=0) > info.max_model_len:
        yield f"a text has {max(lens)} tokens, max_model_len is {info.max_model_len}"
    if any(not 0 <= token_id < info.vocab_size for token_id in request.prompt_token_ids):
        yield f"the texts must be token ids in [0, {info.vocab_size})"


def _find_form_faults(
    pooling: Pooling, lens: Sequence[int], forms: Sequence[VectorForm]
) -> Iterator[str]:
    if pooling.form not in forms:
        yield f"the form must be one of {', '.join(forms)}, given {pooling.form}"
    visible = pooling.visible_lens
    if visible and (
        len(visible) != len(lens)
        or any(not 1 <= each <= length for each, length in zip(visible, lens, strict=True))
    ):
        yield f"visible_lens must have {len(lens)} values from 1 to the length of each text"


def _find_voice_faults(voice: Voice | None, info: EngineInfo) -> Iterator[str]:
    shape = info.speech
    if (shape is None) != (voice is None):
        yield "this model needs a voice" if voice is None else "this model has no voices"
    if shape is None or voice is None:
        return
    if not voice.voices or any(not 0 <= each < len(shape.voices) for each, _ in voice.voices):
        yield f"the voices must be numbers from 0 to {len(shape.voices) - 1}, given {voice.voices}"
    if not abs(sum(weight for _, weight in voice.voices) - 1) < _WEIGHT_ERROR:
        yield f"the weights of the voices must sum to 1, given {voice.voices}"
    if not 0 < voice.speed < inf:
        yield f"the speed must be above 0, given {voice.speed}"


def _find_task_faults(tasks: Sequence[int], num_texts: int, num_tasks: int) -> Iterator[str]:
    if tasks and len(tasks) != num_texts:
        yield f"tasks must have {num_texts} values, given {len(tasks)}"
    if any(not 0 <= task <= num_tasks for task in tasks):
        yield f"the tasks must be numbers from 0 to {num_tasks}, given {max(tasks)}"


def _make_final_output(
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
