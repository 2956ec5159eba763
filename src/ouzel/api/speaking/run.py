"""Runs the speech of one request, and records its facts for the request log."""

import math
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from ouzel.api.http.exchange import Exchange
from ouzel.api.http.recorded_end import record_end
from ouzel.generation import Usage
from ouzel.speaking.spoken_part import SpokenPart

_TOKENS_PER_S = 20  # OpenAI counts a token for 50 ms of speech


class SpeechRun:
    """Passes on the parts of a speech; the request log reads the public attributes."""

    def __init__(
        self,
        model_name: str,
        parts: AsyncGenerator[SpokenPart, None],
        sample_rate: int,
        exchange: Exchange,
    ) -> None:
        self.model_name = model_name
        self.ttft_s: float | None = None  # seconds from the arrival to the first sound
        self.finish_reasons: list[str] = []
        self._parts = parts
        self._sample_rate = sample_rate
        self._exchange = exchange
        self.num_samples = 0  # samples of the parts so far
        self._num_tokens = 0

    def usage(self) -> Usage:
        """Returns the numbers of phonemes, and of tokens of sound, so far."""
        return Usage(
            prompt_tokens=self._num_tokens,
            cached_tokens=0,
            completion_tokens=math.ceil(self.num_samples * _TOKENS_PER_S / self._sample_rate),
            reasoning_tokens=0,
        )

    async def parts(self) -> AsyncGenerator[SpokenPart, None]:
        """Yields the parts. Closing the generator aborts the speech."""
        async with aclosing(record_end(self._parts, self.finish_reasons.append)) as parts:
            async for part in parts:
                self._record(part)
                yield part

    def _record(self, part: SpokenPart) -> None:
        if self.ttft_s is None:
            self.ttft_s = time.perf_counter() - self._exchange.arrival_s
        self._num_tokens += part.num_tokens
        self.num_samples += len(part.samples)
        self._exchange.audio_s = self.num_samples / self._sample_rate
