"""Computes the times of words from the attention of the model's alignment heads.

The method and its constants come from openai-whisper's `timing.py`. One detail differs: the
probability of a word comes from the logprobs of the transcript, not of the aligned prompt, so it
costs no further computation.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from ouzel.tokenizer.base import Tokenizer
from ouzel.transcription.aligned_word import AlignedWord, align_words
from ouzel.transcription.engine_calls import EngineCalls
from ouzel.transcription.events import Segment
from ouzel.transcription.speech_prompts import SpeechPrompts
from ouzel.transcription.time_warping import find_row_begins
from ouzel.transcription.windows import FRAMES_PER_S
from ouzel.transcription.word_durations import place_words
from ouzel.transcription.word_split import split_words
from ouzel.types.engine_request import AudioInput
from ouzel.types.step_output import PositionLogprobs

_FRAMES_PER_ENCODER_FRAME = 2
_ENCODER_FRAMES_PER_S = FRAMES_PER_S / _FRAMES_PER_ENCODER_FRAME


@dataclass(frozen=True, slots=True)
class SpokenSegment:
    segment: Segment
    logprobs: tuple[PositionLogprobs, ...]  # one for each of its tokens


class WordAligner:
    """Computes the times of the words of one transcription."""

    def __init__(self, calls: EngineCalls, prompts: SpeechPrompts, tokenizer: Tokenizer) -> None:
        self._calls = calls
        self._prompts = prompts
        self._tokenizer = tokenizer

    async def add_words(
        self,
        spoken: list[SpokenSegment],
        audio: AudioInput,
        *,
        num_frames: int,
        last_speech_s: float,
    ) -> list[SpokenSegment]:
        """Returns the segments of a window with their words; their times then follow the words.

        `num_frames` is the number of frames with sound; `last_speech_s` is the end of the last word
        before.
        """
        end = self._prompts.tokens.end
        pairs = [
            [
                (token_id, exp(logprob.sampled.logprob))
                for token_id, logprob in zip(each.segment.token_ids, each.logprobs, strict=True)
                if token_id < end
            ]
            for each in spoken
        ]
        text_ids = [token_id for of_segment in pairs for token_id, _ in of_segment]
        if not text_ids:
            return spoken
        probabilities = [probability for of_segment in pairs for _, probability in of_segment]
        num_encoder_frames = max(num_frames // _FRAMES_PER_ENCODER_FRAME, 1)
        matrix = await self._calls.align(
            self._prompts.make_aligned(text_ids), audio, num_encoder_frames
        )
        # Rows from <|notimestamps|> on: a token attends to the sound of the next one.
        rows = matrix[len(self._prompts.start) : -1]
        words = await asyncio.to_thread(self._find_words, rows, text_ids, probabilities)
        segments = place_words(
            words,
            [each.segment for each in spoken],
            [len(of_segment) for of_segment in pairs],
            last_speech_s=last_speech_s,
        )
        return [
            SpokenSegment(segment, each.logprobs)
            for segment, each in zip(segments, spoken, strict=True)
        ]

    def _find_words(
        self,
        rows: NDArray[np.float32],
        text_ids: Sequence[int],
        probabilities: Sequence[float],
    ) -> list[AlignedWord]:
        words = split_words(text_ids, self._tokenizer, self._prompts.language)
        begins = find_row_begins(-rows)
        return align_words(words, begins / _ENCODER_FRAMES_PER_S, probabilities)
