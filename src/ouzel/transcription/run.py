"""Transcribes one sound: finds its language, runs its windows, joins their text."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from ouzel.audio.sound import SampledSound
from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.errors import InvalidRequest, Overloaded
from ouzel.generation import ServedModel
from ouzel.transcription.engine_calls import EngineCalls, FirstToken
from ouzel.transcription.events import (
    Segment,
    SegmentDone,
    TextDelta,
    Transcription,
    TranscriptionEvent,
)
from ouzel.transcription.options import TranscriptionOptions
from ouzel.transcription.parallel_loops import Emit, RunLoop, run_loops
from ouzel.transcription.speech_chunks import Stretch, find_chunks
from ouzel.transcription.speech_prompts import SpeechPrompts
from ouzel.transcription.voice_activity import VoiceActivity
from ouzel.transcription.window_decoder import WindowDecoder
from ouzel.transcription.window_loop import PreparedSound, WindowLoop
from ouzel.transcription.windows import (
    FRAME_SAMPLES,
    SAMPLE_RATE,
    Features,
    SoundPart,
)
from ouzel.transcription.word_times import WordAligner
from ouzel.types.step_output import FinishReason, PositionLogprobs
from ouzel.worker_threads import WorkerThreads

_SHARE_OF_PLACES = 2  # one transcription takes at most the free places divided by this
_ENGLISH = "en"  # language of a sound without speech


@dataclass(frozen=True, slots=True)
class SpeechParts:
    """The parts that all transcriptions of a model share."""

    model: ServedModel
    tokens: SpeechTokens
    features: Features
    threads: WorkerThreads  # they read sounds and compute features
    voice_activity: VoiceActivity


class TranscriptionRun:
    """Transcribes one sound for one HTTP request; `events()` is iterated once."""

    def __init__(
        self,
        parts: SpeechParts,
        options: TranscriptionOptions,
        calls: EngineCalls,
        language: str | None,
    ) -> None:
        """Without a language, the model detects it in the first window."""
        self._parts = parts
        self._engine = parts.model.engine
        self._options = options
        self._calls = calls
        self._language = language
        self._no_speech_prob: float | None = None  # probability of the first window, if it is known
        self._context = self._encode_prompt()
        self._text: list[str] = []
        self._logprobs: list[PositionLogprobs] = []
        self._segments: list[Segment] = []

    async def events(self, sound: SampledSound) -> AsyncGenerator[TranscriptionEvent, None]:
        """Yields the events; the last is the whole transcription."""
        reason = FinishReason.ERROR
        try:
            async with aclosing(self._transcribe(sound)) as events:
                async for event in events:
                    yield event
            reason = FinishReason.STOP
            yield self._make_result(sound)
        except (GeneratorExit, asyncio.CancelledError):
            reason = FinishReason.STOP if reason is FinishReason.STOP else FinishReason.ABORT
            raise
        except InvalidRequest:
            reason = FinishReason.REFUSED
            raise
        except Overloaded:
            reason = FinishReason.OVERLOADED
            raise
        finally:
            self._calls.note_end(reason)

    async def _transcribe(
        self, sound: SampledSound
    ) -> AsyncGenerator[TextDelta | SegmentDone, None]:
        prepared, chunks = await self._prepare(sound)
        if self._language is None and chunks:
            await self._detect_language(_cut_sound(prepared, chunks[0]), chunks[0].begin)
        loops = self._make_loops(prepared, chunks)
        async with aclosing(self._run_loops(loops)) as events:
            async for event in events:
                if (noted := self._note(event)) is not None:
                    yield noted

    def _encode_prompt(self) -> list[int]:
        text = self._options.prompt.strip()
        if not text:
            return []
        # Spellings of control tokens in the text of a client are text.
        tokenizer = self._parts.model.tokenizer
        return tokenizer.encode_guarded(f" {text}", (), add_special_tokens=False)

    async def _prepare(self, sound: SampledSound) -> tuple[PreparedSound, list[Stretch]]:
        """Reads the whole sound; returns it with its peak, and the chunks between its pauses."""
        parts, shape = self._parts, self._engine.info.audio
        assert shape is not None, "the endpoint refuses models that read no sound"
        peak = await parts.threads.run(partial(parts.features.find_peak, sound))
        prepared = PreparedSound(sound, parts.features, peak, shape.num_frames, parts.threads)
        num_frames = sound.num_samples // FRAME_SAMPLES
        if self._options.chunking == "sequential":
            return prepared, [Stretch(0, num_frames)] if num_frames else []
        speech = await parts.threads.run(partial(parts.voice_activity.find_speech, sound))
        chunks = find_chunks(
            speech,
            self._options.detection,
            num_frames=num_frames,
            max_frames=shape.num_frames,
        )
        return prepared, chunks

    async def _detect_language(self, sound: PreparedSound, begin_frame: int) -> None:
        tokens = self._parts.tokens
        audio = await sound.compute_window(begin_frame)
        first: FirstToken = await self._calls.guess_first(
            [tokens.start],
            audio,
            no_speech=tokens.no_speech,
            allowed=tuple(tokens.languages.values()),
        )
        codes = {token_id: code for code, token_id in tokens.languages.items()}
        self._language = codes.get(first.token_id, _ENGLISH)
        if not self._context:  # the first window has the same prompt
            self._no_speech_prob = first.no_speech_prob

    def _make_loops(self, prepared: PreparedSound, chunks: Sequence[Stretch]) -> list[RunLoop]:
        parts, options, calls = self._parts, self._options, self._calls
        prompts = SpeechPrompts(
            tokens=parts.tokens,
            language=self._language or _ENGLISH,
            task=options.task,
            has_timestamps=options.has_timestamps,
            max_model_len=self._engine.info.max_model_len,
        )
        tokenizer = parts.model.tokenizer
        decoder = WindowDecoder(calls, prompts, tokenizer, options)
        aligner = WordAligner(calls, prompts, tokenizer) if options.has_words else None

        async def run_chunk(chunk: Stretch, no_speech_prob: float | None, emit: Emit) -> None:
            loop = WindowLoop(
                _cut_sound(prepared, chunk),
                decoder,
                aligner,
                options,
                emit,
                begin_frame=chunk.begin,
                context=self._context,
                no_speech_prob=no_speech_prob,
            )
            await loop.run()

        return [
            partial(run_chunk, chunk, self._no_speech_prob if place == 0 else None)
            for place, chunk in enumerate(chunks)
        ]

    async def _run_loops(
        self, loops: Sequence[RunLoop]
    ) -> AsyncGenerator[TextDelta | SegmentDone, None]:
        engine = self._engine
        num_busy = engine.info.max_num_seqs * len(engine.members)
        num_more = min(len(loops) - 1, num_busy - 1, engine.num_free // _SHARE_OF_PLACES)
        # The HTTP request has admitted the first loop. The short requests beside the decoding of a
        # window need no place.
        with engine.admit(num_more) if num_more > 0 else nullcontext():
            async with aclosing(run_loops(loops, 1 + max(num_more, 0))) as events:
                async for event in events:
                    yield event

    def _note(self, event: TextDelta | SegmentDone) -> TextDelta | SegmentDone | None:
        """Adds an event to the result; returns the event that the client gets."""
        if isinstance(event, SegmentDone):
            segment = replace(event.segment, id=len(self._segments))
            self._segments.append(segment)
            return SegmentDone(segment=segment)
        self._logprobs += event.logprobs
        text = event.text if self._text else event.text.lstrip()
        if text:
            self._text.append(text)
        return replace(event, text=text) if text or event.logprobs else None

    def _make_result(self, sound: SampledSound) -> Transcription:
        duration_s = sound.num_samples / SAMPLE_RATE
        return Transcription(
            text="".join(self._text),
            language=self._language or _ENGLISH,
            duration_s=duration_s,
            segments=tuple(self._segments),
            usage=self._calls.make_usage(duration_s),
            logprobs=tuple(self._logprobs),
        )


def _cut_sound(sound: PreparedSound, chunk: Stretch) -> PreparedSound:
    """Returns the sound without the samples behind a chunk, unless it is the rest of the sound."""
    end = chunk.end * FRAME_SAMPLES
    if end + FRAME_SAMPLES > sound.sound.num_samples:
        return sound
    return replace(sound, sound=SoundPart(sound.sound, end))
