"""Shows how many seconds of sound are transcribed.

The length of a sound is known with its first segment. Until then its share of the bar is the share
of its bytes.
"""

import time
from collections.abc import Sequence
from typing import TextIO

from ouzel.terminal.progress_line import ProgressLine, describe_time

_LEAST_SHARE = 0.05  # the time that is left cannot be told from less


class SoundProgress:
    """Follows all files of a command; a file is named by its place in the command line."""

    def __init__(self, stream: TextIO, sizes: Sequence[int]) -> None:
        """`sizes` has the bytes of each file."""
        self._line = ProgressLine(stream)
        self._sizes = sizes
        self._shares = [0.0] * len(sizes)
        self._done_s = [0.0] * len(sizes)  # seconds of sound
        self._duration_s = 0.0  # the latest sound; 0: not known yet
        self._num_ended = 0
        self._begin_s: float | None = None

    def tell(self, place: int, done_s: float, duration_s: float) -> None:
        """Notes that `done_s` of the sound of a file are transcribed."""
        self._duration_s = duration_s
        self._done_s[place] = max(self._done_s[place], min(done_s, duration_s))
        self._shares[place] = self._done_s[place] / duration_s if duration_s > 0 else 0.0
        self.show()

    def end(self, place: int) -> None:
        """Notes that a file is done, or has failed."""
        self._shares[place] = 1.0
        self._num_ended += 1

    def show(self) -> None:
        share, now_s = self._compute_share(), time.monotonic()
        if self._begin_s is None:
            self._begin_s = now_s
        took_s = max(now_s - self._begin_s, 1e-3)
        text = self._describe_position()
        sound_s = sum(self._done_s)
        if sound_s > 0:
            text += f", {sound_s / took_s:.1f}x real time"
        if _LEAST_SHARE <= share < 1:
            text += f", {describe_time(took_s * (1 - share) / share)} left"
        self._line.show(text, share)

    def clear(self) -> None:
        self._line.clear()

    def _describe_position(self) -> str:
        done = format_clock(sum(self._done_s))
        if len(self._sizes) > 1:
            return f"{self._num_ended}/{len(self._sizes)} files, {done}"
        whole = self._duration_s
        return f"{done} of {format_clock(whole)}" if whole > 0 else done

    def _compute_share(self) -> float:
        weights = [max(size, 1) for size in self._sizes]
        done = sum(weight * share for weight, share in zip(weights, self._shares, strict=True))
        return done / sum(weights)


def format_clock(seconds: float) -> str:
    """Returns `minutes:seconds`, or `hours:minutes:seconds`."""
    minutes, whole_s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_s:02d}" if hours else f"{minutes}:{whole_s:02d}"
