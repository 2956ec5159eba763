"""InternVL reads a video as numbered frames, each with one tile.

Source: transformers 5.23, video_processing_internvl.py and processing_internvl.py. There, the
caller chooses the number of frames; here it is two per second, as in other families.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from ouzel.prompts.vision.base import Normalisation
from ouzel.prompts.vision.internvl import InternVlImageProcessor
from ouzel.prompts.vision.internvl import load as load_of_pictures
from ouzel.prompts.vision.settings import (
    HeightAndWidth,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_video_settings,
)
from ouzel.prompts.vision.video import Clip, FrameGroup, VideoLayout, VideoProcessor

# Keys of the image processor that apply to videos if the checkpoint has no video processor.
_SHARED_KEYS = (
    "size",
    "image_mean",
    "image_std",
    "rescale_factor",
    "resample",
    "do_rescale",
    "do_normalize",
)


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: Side | HeightAndWidth = HeightAndWidth(384, 384)
    fps: Annotated[float, Meta(gt=0, le=1000)] = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InternVlVideoProcessor:
    placeholder: str
    feature_token: str
    start_token: str
    end_token: str
    normalisation: Normalisation
    resample: int
    size: tuple[int, int]  # width and height of a tile
    tokens_per_frame: int
    fps: float

    @property
    def frames_per_group(self) -> int:
        return 1

    def sampled(
        self, num_frames: int, rate: float, *, fps: float | None, max_frames: int
    ) -> Sequence[int]:
        """Returns the middle frame of each of as many equal parts as frames are sampled."""
        num = max(1, min(int(num_frames / rate * (fps or self.fps)), max_frames, num_frames))
        part = num_frames / num
        # The reference rounds the sums to single precision.
        middles = np.arange(part / 2, num_frames, part).astype(np.float32)
        return [min(int(each), num_frames - 1) for each in middles[:num]]

    def layout(self, clip: Clip) -> VideoLayout:
        frame = f"{self.start_token}{self.feature_token * self.tokens_per_frame}{self.end_token}"
        numbers = range(1, len(clip.times_s) + 1)
        groups = tuple(FrameGroup(self.tokens_per_frame) for _ in numbers)
        return VideoLayout(
            "\n".join(f"Frame{number}: {frame}" for number in numbers), self.size, groups
        )


def load(files: ProcessorFiles) -> VideoProcessor:
    """Makes the processor from the checkpoint's files. Raises ModelLoadError."""
    settings = read_video_settings(files, _Settings, ("InternVLVideoProcessor",), _SHARED_KEYS)
    pictures = load_of_pictures(files)
    assert isinstance(pictures, InternVlImageProcessor)
    size = settings.size
    return InternVlVideoProcessor(
        placeholder=files.special_tokens.get("video_token", "<video>"),
        feature_token=pictures.feature_token,
        start_token=pictures.start_token,
        end_token=pictures.end_token,
        normalisation=settings.normalisation(),
        resample=settings.resample,
        size=(size, size) if isinstance(size, int) else (size.width, size.height),
        tokens_per_frame=pictures.tokens_per_tile,
        fps=settings.fps,
    )
