"""Defines the interface of video processors: the text in the prompt for a video, and the frames and
sizes for the model.

The layout depends only on the number, times and size of the frames, so a request is counted, and
perhaps refused, before any frame is decoded. A vision encoder takes one or two frames at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ouzel.prompts.vision.base import Normalisation


@dataclass(frozen=True, slots=True)
class Clip:
    """Holds the sampled frames of a video."""

    width: int  # width of a decoded frame in pixels
    height: int
    times_s: Sequence[float]  # start of each frame, from the video's beginning
    rate: float  # sampled frames per second of the video


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """Frames that the vision encoder turns into features together."""

    num_tokens: int
    position_grid: tuple[int, int, int] | None = None  # see ImageLayout
    # difference to the positions of the video's first group; None: positions follow from the prompt
    time_shift: int | None = None


@dataclass(frozen=True, slots=True)
class VideoLayout:
    """Describes the place of a video in a prompt."""

    text: str  # replaces the template's placeholder in the prompt
    size: tuple[int, int]  # width and height to which frames are resized
    groups: tuple[FrameGroup, ...]  # ordered by their tokens; the last may lack frames

    @property
    def num_tokens(self) -> int:
        return sum(group.num_tokens for group in self.groups)


class VideoProcessor(Protocol):
    """Prepares videos as one model was trained."""

    @property
    def placeholder(self) -> str:
        """Returns the text for one video in the rendered chat."""
        ...

    @property
    def feature_token(self) -> str: ...

    @property
    def normalisation(self) -> Normalisation: ...

    @property
    def resample(self) -> int:
        """Returns the number of Pillow's filter for resizing frames."""
        ...

    @property
    def frames_per_group(self) -> int: ...

    def sampled(
        self, num_frames: int, rate: float, *, fps: float | None, max_frames: int
    ) -> Sequence[int]:
        """Returns the indices of the frames to sample.

        The video has `num_frames` frames, `rate` of them per second. `fps` is the number of sampled
        frames per second that the client asks for; None: the checkpoint's number.
        """
        ...

    def layout(self, clip: Clip) -> VideoLayout:
        """Returns the layout of the sampled frames.

        Raises ValueError with the reason for a video that the model cannot take.
        """
        ...
