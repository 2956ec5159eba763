"""Finds where turns of speech begin and end, from the probabilities of frames."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SAMPLE_RATE
from ouzel.transcription.live.speech_probability import LiveVoiceActivity
from ouzel.transcription.options import VoiceDetection


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    position: int  # the sample where the turn begins, padding included


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    position: int  # the sample after the turn, silence included


SpeechEdge = SpeechStarted | SpeechStopped


class TurnDetector:
    """Positions count the samples from the first `push` on."""

    def __init__(
        self, activity: LiveVoiceActivity, detection: VoiceDetection, *, max_samples: int
    ) -> None:
        """A turn ends after `max_samples` although nobody pauses."""
        self._activity = activity
        self._detection = detection
        self._max_samples = max_samples
        self._num_frames = 0
        self._earliest = 0  # the end of the turn before
        self._begin: int | None = None  # the begin of the turn in progress
        self._pause = 0  # samples since the last speech of the turn

    @property
    def first_needed(self) -> int:
        """Returns the first position that a turn, now or later, may contain."""
        if self._begin is not None:
            return self._begin
        now = self._num_frames * self._activity.frame_samples
        return max(self._earliest, now - self._count_samples(self._detection.prefix_padding_ms))

    @property
    def is_speaking(self) -> bool:
        return self._begin is not None

    def set_detection(self, detection: VoiceDetection) -> None:
        self._detection = detection

    def push(self, samples: NDArray[np.float32]) -> list[SpeechEdge]:
        """Takes float32 [samples] at 16 kHz, and returns the edges in them."""
        edges: list[SpeechEdge] = []
        for probability in self._activity.push(samples).tolist():
            edge = self._rate(is_speech=probability >= self._detection.threshold)
            if edge is not None:
                edges.append(edge)
        return edges

    def restart(self, position: int) -> None:
        """Ends the turn in progress without an edge. No later turn begins before `position`."""
        self._begin = None
        self._earliest = position

    def _rate(self, *, is_speech: bool) -> SpeechEdge | None:
        size = self._activity.frame_samples
        first = self._num_frames * size
        self._num_frames += 1
        if self._begin is None:
            if not is_speech or first < self._earliest:
                return None
            padding = self._count_samples(self._detection.prefix_padding_ms)
            self._begin = max(first - padding, self._earliest)
            self._pause = 0
            return SpeechStarted(self._begin)
        self._pause = 0 if is_speech else self._pause + size
        end = first + size
        least_pause = max(self._count_samples(self._detection.silence_duration_ms), size)
        if self._pause >= least_pause or end - self._begin >= self._max_samples:
            self.restart(end)
            return SpeechStopped(end)
        return None

    def _count_samples(self, duration_ms: int) -> int:
        return duration_ms * SAMPLE_RATE // 1000
