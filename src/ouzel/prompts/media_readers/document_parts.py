"""Reads content parts with a file: OpenAI's chats have the fields in an object, its responses in
the part.

A PDF becomes a part whose pages are pictures or texts, a picture becomes a picture, and a text file
becomes a text of the prompt. The bytes of a file decide, not its name.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import assert_never

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.document import is_pdf
from ouzel.prompts.media.fetching.sources import (
    InlineSource,
    is_picture,
    read_beginning,
    read_inline,
    read_source,
)
from ouzel.prompts.media.parts import Detail, DocumentPart, MediaPart
from ouzel.prompts.media.picture import PictureLimits
from ouzel.prompts.media_readers.picture_parts import read_detail
from ouzel.prompts.media_readers.uploaded_files import KEY, OpenedFile, open_named
from ouzel.prompts.media_readers.wrong_values import invalid

_DATA, _URL, _NAME = "file_data", "file_url", "filename"
_HEAD_LEN = 1024  # bytes that show a PDF
_ANY_SIZE = PictureLimits(max_bytes=sys.maxsize, max_pixels=0)  # the body has a limit
EXPECTED = "a PDF, a picture or a text in UTF-8"


def file_part(fields: Mapping[str, object], path: str) -> DocumentPart | MediaPart | str:
    """Reads the fields of a file. `path` is the path of the object with the fields.

    Raises InvalidRequest.
    """
    detail = read_detail(fields.get("detail"), f"{path}.detail")
    opened = open_named(fields, path)
    data, url = fields.get(_DATA), fields.get(_URL)
    if opened is not None:
        for name, value in ((_DATA, data), (_URL, url)):
            if value is not None:
                raise InvalidRequest(f"must not be given beside {KEY}", field=f"{path}.{name}")
        return uploaded_part(opened, f"{path}.{KEY}", detail)
    if data is not None and url is not None:
        raise InvalidRequest(f"must not be given beside {_DATA}", field=f"{path}.{_URL}")
    if url is not None:
        own_path = f"{path}.{_URL}"
        url = _text(url, own_path, "a URL, a data URL or a path")
        return DocumentPart(own_path, url, detail, heads=_heads(fields.get(_NAME)))
    return _inline_part(fields, path, detail)


def uploaded_part(file: OpenedFile, path: str, detail: Detail) -> DocumentPart | MediaPart | str:
    """Makes the part of an uploaded file. `path` is the path of its id, for errors.

    Raises InvalidRequest for another kind of file.
    """
    match file.content:
        case str() as text:
            return frame_file([file.filename], text)
        case bytes() as data if is_pdf(data):
            return DocumentPart(path, file.url, detail, data, _heads(file.filename))
        case bytes() as data if is_picture(data):
            return MediaPart(path, file.url, detail, data)
        case bytes() as data:
            raise InvalidRequest(
                f"must name {EXPECTED}, given {len(data)} bytes of another format", field=path
            )
        case unreachable:
            assert_never(unreachable)


def frame_file(heads: Sequence[str | None], text: str) -> str:
    """Returns the text of the prompt for a text file; `heads` are its name and other lines."""
    return "\n".join(["<document>", *(head for head in heads if head), text, "</document>"])


def decode_text(data: bytes) -> str | None:
    """Returns the text of a file, or None if it is no text."""
    if b"\0" in data or is_pdf(data):
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _inline_part(
    fields: Mapping[str, object], path: str, detail: Detail
) -> DocumentPart | MediaPart | str:
    path, heads = f"{path}.{_DATA}", _heads(fields.get(_NAME))
    data = _text(fields.get(_DATA), path, "a data URL or base64")
    # A colon is in every URL, but never in base64.
    url = data if ":" in data else f"data:;base64,{data}"
    source = read_source(url, path)
    if isinstance(source, InlineSource) and not is_pdf(read_beginning(source, _HEAD_LEN)):
        text = decode_text(read_inline(source, path, _ANY_SIZE))
        if text is not None:
            return frame_file(heads, text)
    return DocumentPart(path, url, detail, heads=heads)


def _heads(name: object) -> tuple[str, ...]:
    """Returns the lines above the text of a file."""
    return (name,) if isinstance(name, str) and name else ()


def _text(value: object, path: str, expected: str) -> str:
    if not isinstance(value, str) or not value:
        raise invalid(path, expected, value)
    return value
