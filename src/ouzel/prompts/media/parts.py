from dataclasses import dataclass
from typing import Literal

Detail = Literal["auto", "low", "high"]


@dataclass(frozen=True, slots=True)
class MediaPart:
    """Is a content part that names a picture."""

    path: str  # of the field, for errors: messages[0].content[1].image_url.url
    url: str
    detail: Detail = "auto"
