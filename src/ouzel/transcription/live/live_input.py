"""Takes the sound of one session, and cuts it into turns: at pauses, or where the client says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SAMPLE_RATE, Sound
from ouzel.errors import InvalidRequest
from ouzel.transcription.live.input_buffer import InputBuffer
from ouzel.transcription.live.intake import InputFormat, Intake, compute_duration_s
from ouzel.transcription.live.speech_probability import LiveVoiceActivity
from ouzel.transcription.live.turn_detector import SpeechStarted, SpeechStopped, TurnDetector
from ouzel.transcription.options import VoiceDetection

_LEAST_TURN_MS = 100  # OpenAI's limit of a commit


class EmptyTurn(InvalidRequest):
    """The client commits a buffer without enough sound."""

    code = "input_audio_buffer_commit_empty"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    start_ms: int  # since the session began


@dataclass(frozen=True, slots=True)
class TurnStopped:
    end_ms: int
    sound: Sound


class LiveInput:
    """Has no lock: one thread at a time may call it."""

    def __init__(self, make_activity: Callable[[], LiveVoiceActivity], *, max_samples: int) -> None:
        """`make_activity` makes the detector of a sound. `max_samples` limits a turn, which stays
        in memory until it ends.
        """
        self._make_activity = make_activity
        self._max_samples = max_samples
        self._buffer = InputBuffer()
        self._format = InputFormat.PCM
        self._intake = Intake(self._format)
        self._detector: TurnDetector | None = None
        self._origin = 0  # the position at which the detector began

    @property
    def num_bytes(self) -> int:
        return self._buffer.num_bytes

    @property
    def is_speaking(self) -> bool:
        return self._detector is not None and self._detector.is_speaking

    def configure(
        self, form: InputFormat, detection: VoiceDetection | None
    ) -> list[TurnStarted | TurnStopped]:
        """Sets the format and the detection; None: turns end by `commit` alone.

        Returns the edges in the last samples of the format before.
        """
        found: list[TurnStarted | TurnStopped] = []
        if form is not self._format:
            found = self._store(self._intake.finish())
            self._format = form
            self._intake = Intake(form)
        if detection is None:
            self._detector = None
        elif self._detector is None:
            self._origin = self._buffer.end
            self._detector = TurnDetector(
                self._make_activity(), detection, max_samples=self._max_samples
            )
            self._buffer.drop_before(self._buffer.end)
        else:
            self._detector.set_detection(detection)
        return found

    def append(self, data: bytes) -> list[TurnStarted | TurnStopped]:
        """Takes bytes in the format. Raises InvalidRequest if they do not fit into the buffer."""
        if self._detector is None:
            self._check_room(data)
        return self._store(self._intake.push(data))

    def commit(self) -> Sound:
        """Returns the sound of the buffer as a turn. Raises EmptyTurn."""
        begin = self._buffer.begin
        if self._detector is not None:
            begin = self._origin + self._detector.first_needed
        self._restart_intake(keeps_end=True)
        position = self._buffer.end
        self._buffer.drop_before(begin)
        duration_ms = _count_ms(self._buffer.num_samples)
        if duration_ms < _LEAST_TURN_MS:
            raise EmptyTurn(
                f"the buffer must have at least {_LEAST_TURN_MS} ms of sound to commit, "
                f"it has {duration_ms} ms"
            )
        self._restart_detector(position)
        return self._buffer.take(position)

    def clear(self) -> None:
        self._restart_intake(keeps_end=False)
        self._buffer.drop_before(self._buffer.end)
        self._restart_detector(self._buffer.end)

    def _check_room(self, data: bytes) -> None:
        limit_s = self._max_samples / SAMPLE_RATE
        duration_s = self._buffer.num_samples / SAMPLE_RATE
        duration_s += compute_duration_s(self._format, len(data))
        if duration_s > limit_s:
            raise InvalidRequest(
                f"the buffer must be <= {limit_s:g} s long, given {duration_s:.1f} s: "
                "commit or clear it before",
                param="audio",
            )

    def _store(self, samples: NDArray[np.float32]) -> list[TurnStarted | TurnStopped]:
        self._buffer.append(samples)
        if self._detector is None:
            return []
        found: list[TurnStarted | TurnStopped] = []
        for edge in self._detector.push(samples):
            position = self._origin + edge.position
            match edge:
                case SpeechStarted():
                    self._buffer.drop_before(position)
                    found.append(TurnStarted(_count_ms(position)))
                case SpeechStopped():
                    found.append(TurnStopped(_count_ms(position), self._buffer.take(position)))
                case unreachable:
                    assert_never(unreachable)
        self._buffer.drop_before(self._origin + self._detector.first_needed)
        return found

    def _restart_intake(self, *, keeps_end: bool) -> None:
        end = self._intake.finish()
        self._intake = Intake(self._format)
        if keeps_end:
            self._buffer.append(end)
            if self._detector is not None:
                self._detector.push(end)

    def _restart_detector(self, position: int) -> None:
        if self._detector is not None:
            self._detector.restart(position - self._origin)


def _count_ms(num_samples: int) -> int:
    return num_samples * 1000 // SAMPLE_RATE
