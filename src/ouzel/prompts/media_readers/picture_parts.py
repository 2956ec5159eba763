"""A content part that names a picture is read.

Its `image_url` is as OpenAI's chats have it, an object, or as its responses do, a text with `detail` beside.
"""

from collections.abc import Mapping
from typing import get_args

from ouzel.prompts.media.parts import Detail, MediaPart
from ouzel.prompts.media_readers.wrong_values import invalid

KINDS = ("image_url", "input_image")


def picture_part(part: Mapping[str, object], path: str) -> MediaPart:
    """Raises InvalidRequest."""
    value, path = part.get("image_url"), f"{path}.image_url"
    if isinstance(value, dict):
        url, detail, url_path, detail_path = (
            value.get("url"),
            value.get("detail"),
            f"{path}.url",
            f"{path}.detail",
        )
    else:
        url, detail, url_path = value, part.get("detail"), path
        detail_path = f"{path.removesuffix('.image_url')}.detail"
    if not isinstance(url, str) or not url:
        raise invalid(url_path, "a URL, a data URL, base64 or a path", url)
    return MediaPart(url_path, url, read_detail(detail, detail_path))


def read_detail(value: object, path: str) -> Detail:
    """Raises InvalidRequest."""
    match value:
        case None:
            return "auto"
        case "auto" | "low" | "high":
            return value
        case "original":
            return "high"  # which is as much as the model takes
        case _:
            raise invalid(path, f"one of {', '.join(get_args(Detail))}, original", value)
