"""Reads fields of input items with type checks; errors name the path and show the value."""

from collections.abc import Sequence
from dataclasses import replace

from ouzel.errors import InvalidRequest
from ouzel.generation import (
    DocumentPart,
    MediaPart,
    NamedFile,
    ReadableMedia,
    SoundPart,
    file_part,
    name_file,
    picture_part,
    sound_part,
)
from ouzel.wire.validation_errors import show_value

Message = dict[str, object]

# Type of a content part -> the key of its text.
TEXT_KEYS = {
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
}

PICTURE, FILE, SOUND = "input_image", "input_file", "input_audio"
MEDIA = (PICTURE, FILE)  # parts with pictures, PDFs or texts
_NON_TEXT_PARTS = (*MEDIA, SOUND)


def read_content(
    value: object, path: str, kinds: Sequence[str], *, readable: ReadableMedia
) -> object:
    """Reads the content of a message or output: a text, or a list of parts.

    `kinds` are the accepted types of parts. Pictures and sounds are accepted only if they are
    `readable` for the model. Raises InvalidRequest, and FilesNeeded for uploaded files.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise invalid_value(path, "a string or a non-empty list of content parts", value)
    return [
        read_part(part, f"{path}[{position}]", kinds, readable=readable)
        for position, part in enumerate(value)
    ]


def read_part(
    value: object, path: str, kinds: Sequence[str], *, readable: ReadableMedia
) -> Message | MediaPart | DocumentPart | SoundPart:
    """Reads one part of a content, as `read_content` reads them."""
    part = require_object(value, path)
    kind = part.get("type")
    is_read = {PICTURE: readable.pictures, SOUND: readable.sounds}
    accepted = [each for each in kinds if is_read.get(each, True)]
    if kind == FILE and kind in kinds:
        content = file_part(part, path)
        if isinstance(content, str):
            return {"type": "text", "text": content}
        if isinstance(content, MediaPart) and not readable.pictures:
            reads = readable.describe_input(kind)
            raise InvalidRequest(
                f"must not be a picture: this model reads {reads}", field=content.path
            )
        return content
    elif isinstance(kind, str) and kind in accepted:
        if kind == PICTURE:
            return picture_part(part, path)
        if kind == SOUND:
            return sound_part(part, path)
        return {"type": "text", "text": require_string(part, TEXT_KEYS[kind], path)}
    raise invalid_value(
        f"{path}.type",
        f"one of {', '.join(accepted)}",
        kind,
        _reason(kind, readable=readable),
    )


def list_files(item: Message, path: str) -> list[NamedFile]:
    """Returns the uploaded files that the parts of an item name."""
    named: list[NamedFile] = []
    for key in ("content", "output"):
        parts = item.get(key)
        for position, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, dict) and part.get("type") in MEDIA:
                named += name_file(part, f"{path}.{key}[{position}]")
    return named


def _reason(kind: object, *, readable: ReadableMedia) -> str:
    if kind not in _NON_TEXT_PARTS:
        return ""
    if readable.pictures and kind in MEDIA:  # the model reads it, but not at this place
        return ""
    if readable.sounds and kind == SOUND:
        return ""
    reads = replace(readable, videos=False).describe_input(kind)  # no item has a video
    return f": this model reads {reads}"


def read_texts(item: Message, key: str, kind: str, path: str) -> list[str]:
    """Returns the texts of the list `item[key]`, whose parts must have the type `kind`."""
    parts = item.get(key)
    if parts is None:
        return []
    if not isinstance(parts, list):
        raise invalid_value(f"{path}.{key}", "a list", parts)
    texts = []
    for position, value in enumerate(parts):
        at = f"{path}.{key}[{position}]"
        part = require_object(value, at)
        if part.get("type") != kind:
            raise invalid_value(f"{at}.type", kind, part.get("type"))
        texts.append(require_string(part, "text", at))
    return texts


def require_name(item: Message, key: str, path: str) -> str:
    """Returns the non-empty string `item[key]`. Raises InvalidRequest."""
    value = item.get(key)
    if not isinstance(value, str) or not value:
        raise invalid_value(f"{path}.{key}", "a non-empty string", value)
    return value


def require_string(part: Message, key: str, path: str) -> str:
    """Returns the string `part[key]`, which may be empty. Raises InvalidRequest."""
    value = part.get(key)
    if not isinstance(value, str):
        raise invalid_value(f"{path}.{key}", "a string", value)
    return value


def require_object(value: object, path: str) -> Message:
    if not isinstance(value, dict):
        raise invalid_value(path, "an object", value)
    return value


def invalid_value(path: str, expected: str, value: object, why: str = "") -> InvalidRequest:
    return InvalidRequest(f"must be {expected}, given {show_value(value)}{why}", field=path)
