from dataclasses import dataclass
from typing import Literal

Detail = Literal["auto", "low", "high"]

MOST_VIDEO_FRAMES = 4096  # in a list, whatever the options say: none of them allows more


@dataclass(frozen=True, slots=True)
class MediaPart:
    """Is a content part that names a picture."""

    path: str  # of the field, for errors: messages[0].content[1].image_url.url
    url: str
    detail: Detail = "auto"

    @property
    def key(self) -> tuple[str, str]:
        """Equal ones name the same picture, prepared in the same way."""
        return self.url, self.detail


@dataclass(frozen=True, slots=True)
class VideoPart:
    """Is a content part that names a video: a file, or its frames one by one."""

    path: str  # of the field, for errors
    source: MediaPart | tuple[MediaPart, ...]
    # frames a second: that a list of frames has, and that are taken of a file
    fps: float | None = None

    @property
    def key(self) -> tuple[tuple[str, ...], float | None, bool]:
        """Equal ones name the same video, sampled in the same way."""
        is_file = isinstance(self.source, MediaPart)
        parts = (self.source,) if isinstance(self.source, MediaPart) else self.source
        return tuple(part.url for part in parts), self.fps, is_file


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Is a content part that names a PDF, whose pages are pictures."""

    path: str  # of the field, for errors
    url: str
    detail: Detail = "auto"

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal ones name the same pages, prepared in the same way."""
        return "pages", self.url, self.detail


ContentPart = MediaPart | VideoPart | DocumentPart
