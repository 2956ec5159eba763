"""Defines the interface of sound processors: the text in the prompt for a sound, and the features
for the audio encoder.

The layout depends only on the length of the sound, so a request is counted, and perhaps refused,
before any feature is computed.
"""

from dataclasses import dataclass
from typing import Protocol

from ouzel.audio.mel import Spectrogram
from ouzel.audio.sound import SAMPLE_RATE, SampledSound


@dataclass(frozen=True, slots=True)
class SoundLayout:
    """Describes the place of a sound in a prompt, known from its length alone."""

    text: str  # replaces the template's placeholder in the prompt
    num_tokens: int  # occurrences of `feature_token` in the text: one for each row of features
    num_frames: int  # frames of the sound


class SoundProcessor(Protocol):
    """Prepares sounds as one model was trained. Many threads call it."""

    @property
    def placeholder(self) -> str:
        """Returns the text for one sound in the rendered chat."""
        ...

    @property
    def feature_token(self) -> str: ...

    def layout(self, num_samples: int) -> SoundLayout:
        """Returns the layout of a sound of this length.

        Raises ValueError with the reason for a sound that the model cannot take.
        """
        ...

    def compute_features(self, sound: SampledSound) -> Spectrogram:
        """Returns the features of a sound that `layout` accepts, [bins, frames].

        Frames of the silence behind the sound may follow.
        """
        ...


def check_length(num_samples: int, *, min_samples: int, max_seconds: int) -> None:
    """Raises ValueError for a sound that is too short or too long."""
    if num_samples > max_seconds * SAMPLE_RATE:
        raise ValueError(
            f"a sound must last <= {max_seconds} s, given {num_samples / SAMPLE_RATE:.2f} s"
        )
    if num_samples < min_samples:
        raise ValueError(
            f"a sound must last >= {min_samples / SAMPLE_RATE:g} s, "
            f"given {num_samples / SAMPLE_RATE:g} s"
        )
