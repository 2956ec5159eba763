"""Runs one transcription, and records its facts for the request log."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from ouzel.api.http.recorded_end import record_end
from ouzel.generation import Usage
from ouzel.transcription.events import TextDelta, Transcription, TranscriptionEvent

_NO_TOKENS = Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, reasoning_tokens=0)


class SpeechRun:
    """Passes on the events of a transcription; the request log reads the public attributes."""

    def __init__(
        self, model_name: str, events: AsyncGenerator[TranscriptionEvent, None], arrival_s: float
    ) -> None:
        self.model_name = model_name
        self.ttft_s: float | None = None  # seconds from the arrival to the first text
        self.finish_reasons: list[str] = []
        self._events = events
        self._arrival_s = arrival_s
        self._usage = _NO_TOKENS

    def usage(self) -> Usage:
        """Returns the numbers of tokens; zeros until the end."""
        return self._usage

    async def events(self) -> AsyncGenerator[TranscriptionEvent, None]:
        """Yields the events. Closing the generator aborts the transcription."""
        async with aclosing(record_end(self._events, self.finish_reasons.append)) as events:
            async for event in events:
                self._record(event)
                yield event

    async def result(self) -> Transcription:
        """Runs the transcription to its end."""
        result = None
        async with aclosing(self.events()) as events:
            async for event in events:
                if isinstance(event, Transcription):
                    result = event
        assert result is not None, "the last event is the whole transcription"
        return result

    def _record(self, event: TranscriptionEvent) -> None:
        if isinstance(event, TextDelta) and self.ttft_s is None:
            self.ttft_s = time.perf_counter() - self._arrival_s
        if isinstance(event, Transcription):
            self._usage = Usage(
                prompt_tokens=event.usage.input_tokens,
                cached_tokens=0,
                completion_tokens=event.usage.output_tokens,
                reasoning_tokens=0,
            )
