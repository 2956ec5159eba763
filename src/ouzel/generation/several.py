"""Runs the prompts of one HTTP request as several generations and merges their events.

A task reads each generation. Their events meet in a batch; a slow reader keeps the tasks waiting,
so later events are merged at the engine client, where this is cheap.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import msgspec

from ouzel.generation.generation import Generation
from ouzel.generation.records import Event, GenerationRequest, Usage
from ouzel.generation.served_model import ServedModel
from ouzel.observability import Metrics
from ouzel.types.step_output import RequestTiming


class SeveralGenerations:
    """Has the interface of `Generation`. Choice c of prompt p has the index p * n + c."""

    def __init__(
        self,
        requests: Sequence[GenerationRequest],
        model: ServedModel,
        metrics: Metrics,
        *,
        key_id: str | None,
    ) -> None:
        self.model_name = model.names[0]
        self._n = requests[0].n
        self._generations = [
            Generation(request, model, metrics, key_id=key_id) for request in requests
        ]
        self._batch = _Batch()
        self.can_tell_of_dropped: Callable[[], bool] = lambda: False
        for each in self._generations:
            each.can_tell_of_dropped = lambda: (
                bool(self.dropped_formats) or self.can_tell_of_dropped()
            )

    @property
    def request(self) -> GenerationRequest:
        """Returns the first request; the others differ only in prompts and adapters."""
        return self._generations[0].request

    @property
    def dropped_formats(self) -> tuple[str, ...]:
        """Returns the reasons for dropped formats, once for prompts whose formats are equal."""
        return max((each.dropped_formats for each in self._generations), key=len)

    @property
    def timing(self) -> RequestTiming | None:
        """Returns the times of the first prompt."""
        return self._generations[0].timing

    @property
    def ttft_s(self) -> float | None:
        """Returns the time to the first token of any prompt."""
        return min(
            (each.ttft_s for each in self._generations if each.ttft_s is not None), default=None
        )

    @property
    def finish_reasons(self) -> list[str]:
        return [reason for each in self._generations for reason in each.finish_reasons]

    def usage(self) -> Usage:
        usages = [each.usage() for each in self._generations]
        return Usage(
            prompt_tokens=sum(usage.prompt_tokens for usage in usages),
            cached_tokens=sum(usage.cached_tokens for usage in usages),
            completion_tokens=sum(usage.completion_tokens for usage in usages),
            reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
            accepted_prediction_tokens=sum(usage.accepted_prediction_tokens for usage in usages),
            rejected_prediction_tokens=sum(usage.rejected_prediction_tokens for usage in usages),
        )

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Yields lists of new events. The first prompt that fails, or closing the iterator, ends
        all.

        Events that came before a failure are yielded before it is raised.
        """
        readers = [
            asyncio.create_task(self._read(generation, position * self._n))
            for position, generation in enumerate(self._generations)
        ]
        for reader in readers:
            reader.add_done_callback(lambda _: self._batch.changed.set())
        running = set(readers)
        try:
            while running:
                await self._batch.changed.wait()
                batch, self._batch = self._batch, _Batch()
                # Events that come from here on belong to the next round.
                ended_readers = {reader for reader in running if reader.done()}
                if batch.events:
                    yield batch.events
                for reader in ended_readers:
                    reader.result()  # raises the failure of the generation
                running -= ended_readers
                batch.taken.set()
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    async def _read(self, generation: Generation, first_index: int) -> None:
        async with aclosing(generation.events()) as items:
            async for events in items:
                batch = self._batch
                batch.events += [_shift(event, first_index) for event in events]
                batch.changed.set()
                await batch.taken.wait()


class _Batch:
    """Collects events until the reader takes them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changed = asyncio.Event()  # set when there are events, or a generation has ended
        # set when the events have been read, so that their generations continue
        self.taken = asyncio.Event()


def _shift(event: Event, first_index: int) -> Event:
    return msgspec.structs.replace(event, index=first_index + event.index)
