"""A video processor says what stands in the prompt for a video, and which frames of which size the model is shown.

What it says follows from the number, the times and the size of the frames alone, so a request is counted and refused
before any of them is decoded. The vision encoder takes one frame at a time, or two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ouzel.prompts.vision.base import Normalisation


@dataclass(frozen=True, slots=True)
class Clip:
    """The frames that are shown of a video."""

    width: int  # in pixels, as they are decoded
    height: int
    times_s: Sequence[float]  # of each frame, from the video's beginning
    rate: float  # how many of them there are in a second of the video


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """Frames that become features together."""

    num_tokens: int
    position_grid: tuple[int, int, int] | None = None  # as an image's
    # of its positions, behind the video's first; None: a place of its own in the prompt
    time_shift: int | None = None


@dataclass(frozen=True, slots=True)
class VideoLayout:
    text: str  # what stands in the prompt for it, instead of the template's placeholder
    size: tuple[int, int]  # width and height to which frames are resized
    groups: tuple[FrameGroup, ...]  # in the order of their tokens; the last may lack frames

    @property
    def num_tokens(self) -> int:
        return sum(group.num_tokens for group in self.groups)


class VideoProcessor(Protocol):
    @property
    def placeholder(self) -> str:
        """It stands for one video in the rendered chat template."""
        ...

    @property
    def feature_token(self) -> str: ...

    @property
    def normalisation(self) -> Normalisation: ...

    @property
    def resample(self) -> int:
        """The number of the Pillow filter by which frames are resized."""
        ...

    @property
    def frames_per_group(self) -> int: ...

    def sampled(
        self, num_frames: int, rate: float, *, fps: float | None, max_frames: int
    ) -> Sequence[int]:
        """Returns which frames are shown of a video with so many, `rate` in a second.

        `fps` is how many of a second the client wants; None: as many as the checkpoint says.
        """
        ...

    def layout(self, clip: Clip) -> VideoLayout:
        """Raises ValueError for a video that the model cannot take; the message says why."""
        ...
