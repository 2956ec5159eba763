"""Reads content parts with a picture.

The `image_url` of OpenAI's chats is an object; in its responses it is a text with `detail` beside
it.
"""

from collections.abc import Mapping
from typing import get_args

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import Detail, MediaPart
from ouzel.prompts.media_readers.uploaded_files import KEY, OpenedFile, open_named
from ouzel.prompts.media_readers.wrong_values import invalid

KINDS = ("image_url", "input_image")


def picture_part(part: Mapping[str, object], path: str) -> MediaPart:
    """Reads the fields of a picture. Raises InvalidRequest, and FilesNeeded for uploaded files."""
    file = open_named(part, path)
    if file is not None:
        return _uploaded_picture(part, file, path)
    value, path = part.get("image_url"), f"{path}.image_url"
    if isinstance(value, dict):
        url, url_path = value.get("url"), f"{path}.url"
        detail, detail_path = value.get("detail"), f"{path}.detail"
    else:
        url, detail, url_path = value, part.get("detail"), path
        detail_path = f"{path.removesuffix('.image_url')}.detail"
    if not isinstance(url, str) or not url:
        raise invalid(url_path, "a URL, a data URL, base64 or a path", url)
    return MediaPart(url_path, url, read_detail(detail, detail_path))


def _uploaded_picture(part: Mapping[str, object], file: OpenedFile, path: str) -> MediaPart:
    if part.get("image_url") is not None:
        raise InvalidRequest(f"must not be given beside {KEY}", field=f"{path}.image_url")
    detail, path = read_detail(part.get("detail"), f"{path}.detail"), f"{path}.{KEY}"
    if isinstance(file.content, str):
        raise InvalidRequest("must name a picture, given a text", field=path)
    return MediaPart(path, file.url, detail, file.content)


def read_detail(value: object, path: str) -> Detail:
    """Reads the field `detail`. Raises InvalidRequest."""
    match value:
        case None:
            return "auto"
        case "auto" | "low" | "high":
            return value
        case "original":
            return "high"  # the highest detail that the model takes
        case _:
            raise invalid(path, f"one of {', '.join(get_args(Detail))}, original", value)
