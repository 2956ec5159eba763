"""Runs the texts of one HTTP request through the engine and gathers their vectors.

The texts are divided among several engine requests, each with the texts of one step if possible.
Only as many of them run at the same time as keep the engine busy, so that later HTTP requests wait
for these, not for all.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, nullcontext
from functools import partial
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import EngineFailed
from ouzel.generation import ServedModel, Usage, in_background
from ouzel.generation.generation import raise_if_lost
from ouzel.observability import Metrics
from ouzel.pooling import Pooling, VectorForm
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, RequestTiming
from ouzel.vectors.encoded_text import EncodedText

# takes the place of a text and its result
Consume = Callable[[int, NDArray[np.float32]], Awaitable[None]]

_NO_TOKENS = SamplingParams(max_tokens=0)
_SHARE_OF_PLACES = 2  # one request takes at most the free places divided by this
# Steps' worth of texts for each engine; with fewer it finds fewer texts of a similar length.
_STEPS_UNDER_WAY = 4

_numbers = count()


class VectorRun:
    """Computes the vectors of one HTTP request; `vectors()` must be awaited once only.

    The request log reads the public attributes.
    """

    def __init__(
        self,
        texts: Sequence[EncodedText],
        model: ServedModel,
        metrics: Metrics,
        *,
        request_id: str,
        key_id: str | None,
        arrival_s: float,
        priority: int = 0,
        token_ids: tuple[int, ...] = (),
        form: VectorForm = "text",
        consume: Consume | None = None,
    ) -> None:
        """With `token_ids`, the vectors are the logits of these tokens.

        `consume` gets the place of each text with its result, which is not kept then.
        """
        self.model_name = model.names[0]
        self.ttft_s: float | None = None
        self.timing: RequestTiming | None = None
        self.finish_reasons: list[str] = []
        self._texts = texts
        self._engine = model.engine
        self._metrics = metrics
        self._counts = metrics.of_engine(0)  # replaced by the engine of the first texts
        self._request_id = request_id
        self._adapter = model.adapter
        self._cache_salt = model.cache_salt(key_id, "")
        self._arrival_s = arrival_s
        self._priority = priority
        self._token_ids = token_ids
        self._form = form
        self._consume = consume or self._keep
        self._vectors: list[NDArray[np.float32] | None] = [None] * len(texts)
        self._num_made = 0
        self._num_cached_tokens = 0

    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=sum(len(text.token_ids) for text in self._texts),
            cached_tokens=self._num_cached_tokens,
            completion_tokens=0,
            reasoning_tokens=0,
        )

    async def vectors(self) -> NDArray[np.float32]:
        """Returns the vectors of whole texts, [texts, vector size]."""
        await self.compute()
        return np.stack(self.results())

    def results(self) -> list[NDArray[np.float32]]:
        """Returns the result of each text in its form, after `compute` without `consume`."""
        made = [vector for vector in self._vectors if vector is not None]
        assert len(made) == len(self._texts), "every choice ended with its vector"
        return made

    async def compute(self) -> None:
        """Computes the results of all texts. Cancelling it aborts the running requests."""
        num_in_step = self._num_in_step()
        size = min(num_in_step, self._engine.info.max_texts)
        groups = [
            range(begin, min(begin + size, len(self._texts)))
            for begin in range(0, len(self._texts), size)
        ]
        num_busy = -(-_STEPS_UNDER_WAY * num_in_step // size) * len(self._engine.members)
        num_more = min(len(groups) - 1, num_busy - 1, self._engine.num_free // _SHARE_OF_PLACES)
        reason = FinishReason.ERROR
        try:
            # The HTTP request has admitted the first group; more are refused while the server
            # drains.
            with self._engine.admit(num_more) if num_more else nullcontext():
                await self._run_all(groups, places=asyncio.Semaphore(1 + num_more))
        except asyncio.CancelledError:
            reason = FinishReason.ABORT
            raise
        finally:
            self._note_end(reason)

    def _num_in_step(self) -> int:
        """Returns how many of the texts an engine computes in one step."""
        info, num_tokens = self._engine.info, sum(len(text.token_ids) for text in self._texts)
        most = info.max_num_batched_tokens * len(self._texts) // num_tokens
        return max(1, min(info.max_num_seqs, most))

    async def _run_all(self, groups: list[range], places: asyncio.Semaphore) -> None:
        running = [asyncio.create_task(self._run(group, places)) for group in groups]
        try:
            await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _note_engine(self, group: range, number: int) -> None:
        if group.start == 0:
            self._counts = self._metrics.of_engine(number)

    async def _run(self, group: range, places: asyncio.Semaphore) -> None:
        note_engine = partial(self._note_engine, group)
        async with (
            places,
            aclosing(self._engine.submit(self._engine_request(group), note_engine)) as steps,
        ):
            async for outputs in steps:
                for output in outputs:
                    raise_if_lost(output, self._engine)
                    self.timing = self.timing or output.timing
                    self._num_cached_tokens += output.num_cached_tokens
                    if output.vector is not None:
                        await self._take(group[output.index], np.frombuffer(output.vector, "<f4"))

    async def _take(self, place: int, vector: NDArray[np.float32]) -> None:
        # JSON has no word for such a number, and it cannot be sorted.
        if not np.isfinite(vector).all():
            raise EngineFailed(
                f"the vector of text {place} is not finite: "
                "the model's weights or precision are wrong"
            )
        if self._form == "tokens":
            vector = vector.reshape(len(self._texts[place].token_ids), -1)
        await self._consume(place, vector)
        self._num_made += 1

    async def _keep(self, place: int, vector: NDArray[np.float32]) -> None:
        self._vectors[place] = vector

    def _engine_request(self, group: range) -> EngineRequest:
        texts = [self._texts[place] for place in group]
        is_alone = self._engine.info.max_texts == 1
        assert is_alone or not any(text.images for text in texts), "a text with images is alone"
        tasks = tuple(text.task for text in texts)
        return EngineRequest(
            request_id=f"{self._request_id}.{next(_numbers)}",
            prompt_token_ids=list(chain.from_iterable(text.token_ids for text in texts)),
            params=_NO_TOKENS,
            n=len(texts),
            priority=self._priority,
            cache_salt=self._cache_salt,
            adapter=self._adapter,
            images=texts[0].images,
            pooling=Pooling(
                text_lens=() if is_alone else tuple(len(text.token_ids) for text in texts),
                second_begins=() if is_alone else tuple(text.second_begin for text in texts),
                token_ids=self._token_ids,
                tasks=tasks if any(tasks) else (),
                form=self._form,
                visible_lens=_visible_lens(texts),
            ),
        )

    def _note_end(self, reason: FinishReason) -> None:
        if self._num_made == len(self._texts):
            reason = FinishReason.STOP
            self.ttft_s = time.perf_counter() - self._arrival_s
            if not in_background.get():  # nobody waits for it
                self._counts.first_token(self.ttft_s)
            num_tokens = self.usage().prompt_tokens
            self._counts.prompt_computed(
                num_prompt_tokens=num_tokens, num_cached_tokens=self._num_cached_tokens
            )
        self.finish_reasons = [reason.value]
        self._counts.choice_finished(reason.value)


def _visible_lens(texts: Sequence[EncodedText]) -> tuple[int, ...]:
    """Returns the number of tokens of each text that its tokens attend to; empty: all."""
    if not any(text.num_unseen for text in texts):
        return ()
    return tuple(len(text.token_ids) - text.num_unseen for text in texts)
