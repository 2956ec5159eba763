"""Transcribes a stretch of sound, window after window, as openai-whisper's `transcribe.py` does.

Each window begins where the last complete segment of the window before ended. Its prompt has the
text before it, unless the model needed a high temperature for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

from ouzel.audio.sound import SampledSound
from ouzel.transcription.decoding import is_silence
from ouzel.transcription.events import Segment, SegmentDone, TextDelta
from ouzel.transcription.options import TranscriptionOptions
from ouzel.transcription.segment_cuts import Cut, WindowCuts, cut_window
from ouzel.transcription.shown_text import ShownText, has_content
from ouzel.transcription.window_decoder import DecodedWindow, WindowDecoder, decode_text
from ouzel.transcription.windows import (
    FRAME_SAMPLES,
    FRAMES_PER_S,
    Features,
    compute_window,
)
from ouzel.transcription.word_times import SpokenSegment, WordAligner
from ouzel.types.engine_request import AudioInput
from ouzel.worker_threads import WorkerThreads

_MAX_CONTEXT_TEMPERATURE = 0.5  # text of a higher temperature is no context

Emit = Callable[[TextDelta | SegmentDone], None]


@dataclass(frozen=True, slots=True)
class PreparedSound:
    """A sound with the means to compute its windows."""

    sound: SampledSound
    features: Features
    peak: float
    num_window_frames: int
    threads: WorkerThreads

    async def compute_window(self, begin_frame: int) -> AudioInput:
        work = partial(compute_window, self.features, self.sound, begin_frame, self.peak)
        return await self.threads.run(work)


class WindowLoop:
    """Transcribes the frames from `begin_frame` to the end of a sound."""

    def __init__(
        self,
        sound: PreparedSound,
        decoder: WindowDecoder,
        aligner: WordAligner | None,
        options: TranscriptionOptions,
        emit: Emit,
        *,
        begin_frame: int = 0,
        context: list[int],
        no_speech_prob: float | None = None,
    ) -> None:
        """`no_speech_prob` is the probability of the first window, if it is known. The aligner
        computes the times of words.
        """
        self._sound = sound
        self._decoder = decoder
        self._aligner = aligner
        self._options = options
        self._emit = emit
        self._seek = begin_frame
        self._end = sound.sound.num_samples // FRAME_SAMPLES
        self._context = context  # tokens before the next window
        self._no_speech_prob = no_speech_prob
        self._last_speech_s = begin_frame / FRAMES_PER_S

    async def run(self) -> None:
        while self._seek < self._end:
            await self._transcribe_window(
                min(self._sound.num_window_frames, self._end - self._seek)
            )

    async def _transcribe_window(self, num_frames: int) -> None:
        audio = await self._sound.compute_window(self._seek)
        options, decoder = self._options, self._decoder
        shown = ShownText(
            decoder.prompts,
            decoder.tokenizer,
            self._emit,
            has_logprobs=options.num_logprobs is not None,
        )
        # The text can be shown before its end if nothing can replace it.
        stands = not options.falls_back and options.beam_size == 1 and not options.has_words
        window = await decoder.decode(
            audio,
            self._context,
            no_speech_prob=self._no_speech_prob,
            show=shown.show if stands else None,
        )
        self._no_speech_prob = None
        if is_silence(window.decoding, window.no_speech_prob):
            self._seek += num_frames
            return
        cuts = cut_window(window.decoding.token_ids, decoder.prompts.tokens, num_frames)
        spoken = [self._make_segment(cut, window) for cut in cuts.cuts]
        num_frames_done = cuts.num_frames
        if self._aligner is not None:
            spoken = await self._aligner.add_words(
                spoken, audio, num_frames=num_frames, last_speech_s=self._last_speech_s
            )
            num_frames_done = self._move_to_last_word(spoken, cuts)
        self._take(spoken, cuts, window, shown)
        # A window that moves nothing would come again for ever.
        self._seek += num_frames_done or num_frames

    def _make_segment(self, cut: Cut, window: DecodedWindow) -> SpokenSegment:
        decoding, decoder = window.decoding, self._decoder
        token_ids = decoding.token_ids[cut.begin : cut.end]
        offset_s = self._seek / FRAMES_PER_S
        # A timestamp may lie behind the sound; a chunk must not reach into the next one.
        is_chunk = self._options.chunking == "vad"
        limit_s = self._end / FRAMES_PER_S if is_chunk else inf
        segment = Segment(
            id=0,  # the place among all segments is known later
            seek=self._seek,
            start_s=min(offset_s + cut.start_s, limit_s),
            end_s=min(offset_s + cut.end_s, limit_s),
            text=decode_text(token_ids, decoder.prompts.tokens, decoder.tokenizer),
            token_ids=token_ids,
            temperature=decoding.temperature,
            avg_logprob=decoding.avg_logprob,
            compression_ratio=decoding.compression_ratio,
            no_speech_prob=window.no_speech_prob,
        )
        return SpokenSegment(segment, decoding.logprobs[cut.begin : cut.end])

    def _move_to_last_word(self, spoken: list[SpokenSegment], cuts: WindowCuts) -> int:
        """Returns the frames to the next window, which begins after the last word."""
        ends = [each.segment.words[-1].end_s for each in spoken if each.segment.words]
        last_end_s = ends[-1] if ends else spoken[-1].segment.end_s
        self._last_speech_s = last_end_s
        num_frames = round(last_end_s * FRAMES_PER_S) - self._seek
        return cuts.num_frames if cuts.ends_in_silence or num_frames <= 0 else num_frames

    def _take(
        self,
        spoken: list[SpokenSegment],
        cuts: WindowCuts,
        window: DecodedWindow,
        shown: ShownText,
    ) -> None:
        decoding = window.decoding
        for cut, each in zip(cuts.cuts, spoken, strict=True):
            segment = each.segment
            if has_content(segment.start_s, segment.end_s, segment.text):
                shown.show_segment(cut, segment, decoding.token_ids, decoding.logprobs)
                self._emit(SegmentDone(segment=segment))
                self._extend_context(segment.token_ids)
        is_sequential = self._options.chunking == "sequential"
        if is_sequential and decoding.temperature > _MAX_CONTEXT_TEMPERATURE:
            self._context = []

    def _extend_context(self, token_ids: tuple[int, ...]) -> None:
        """Adds the tokens of a segment; chunks between pauses see the client's prompt only."""
        if self._options.chunking == "sequential":
            self._context = [*self._context, *token_ids]
