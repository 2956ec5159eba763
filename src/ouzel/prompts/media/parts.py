from dataclasses import dataclass, field
from typing import Literal

Detail = Literal["auto", "low", "high"]

MOST_VIDEO_FRAMES = 4096  # frames in a list; no option allows more


@dataclass(frozen=True, slots=True)
class MediaPart:
    """Represents a content part with a picture."""

    path: str  # path of the field for errors: messages[0].content[1].image_url.url
    url: str
    detail: Detail = "auto"
    data: bytes | None = field(default=None, repr=False)  # an uploaded file; `url` names it

    @property
    def key(self) -> tuple[str, str]:
        """Returns a key that is equal for parts with the same picture, prepared in the same way."""
        return self.url, self.detail


@dataclass(frozen=True, slots=True)
class VideoPart:
    """Represents a content part with a video: one file, or a list of frames."""

    path: str  # path of the field for errors
    source: MediaPart | tuple[MediaPart, ...]
    # frames per second: of a list of frames, or to sample from a file
    fps: float | None = None

    @property
    def key(self) -> tuple[tuple[str, ...], float | None, bool]:
        """Returns a key that is equal for parts with the same video, sampled in the same way."""
        is_file = isinstance(self.source, MediaPart)
        parts = (self.source,) if isinstance(self.source, MediaPart) else self.source
        return tuple(part.url for part in parts), self.fps, is_file


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Represents a content part with a PDF or with a document without pages, such as a Word file.

    The pages of a PDF become pictures, or texts for a model that does not see. Other documents
    become texts.
    """

    path: str  # path of the field for errors
    url: str
    detail: Detail = "auto"
    data: bytes | None = field(default=None, repr=False)  # an uploaded file; `url` names it
    # lines above the texts of the pages, such as its name; None: texts beside the part frame it
    heads: tuple[str, ...] | None = ()
    is_pdf: bool | None = None  # None: unknown until the file is loaded

    @property
    def key(self) -> tuple[str, str, str]:
        """Returns a key that is equal for parts with the same pages, prepared in the same way."""
        return "pages", self.url, self.detail


@dataclass(frozen=True, slots=True)
class SoundPart:
    """Represents a content part with a sound."""

    path: str  # path of the field for errors: messages[0].content[1].input_audio.data
    url: str

    @property
    def key(self) -> tuple[str, str]:
        """Returns a key that is equal for parts with the same sound."""
        return "sound", self.url


ContentPart = MediaPart | VideoPart | DocumentPart | SoundPart
