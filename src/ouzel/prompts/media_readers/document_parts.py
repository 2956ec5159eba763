"""Reads content parts with a file: OpenAI's chats have the fields in an object, its responses in
the part.

A PDF becomes a part whose pages are pictures or texts, a picture becomes a picture, and a text file
becomes a text of the prompt. Any other file becomes a part whose text is read later, such as a Word
file. The bytes of a file decide, not its name.
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
        return make_document_part(own_path, url, detail, _heads(fields.get(_NAME)))
    return _inline_part(fields, path, detail)


def uploaded_part(file: OpenedFile, path: str, detail: Detail) -> DocumentPart | MediaPart | str:
    """Makes the part of an uploaded file. `path` is the path of its id, for errors."""
    match file.content:
        case str() as text:
            return frame_file([file.filename], text)
        case bytes() as data if is_picture(data):
            return MediaPart(path, file.url, detail, data)
        case bytes() as data:
            heads = _heads(file.filename)
            return DocumentPart(path, file.url, detail, data, heads, is_pdf(data))
        case unreachable:
            assert_never(unreachable)


def make_document_part(
    path: str, url: str, detail: Detail = "auto", heads: tuple[str, ...] = ()
) -> DocumentPart:
    """Makes the part of a document at a URL. The beginning of a data URL shows whether it is a PDF.

    Raises InvalidRequest for a malformed URL.
    """
    source = read_source(url, path)
    begins_like_pdf = None
    if isinstance(source, InlineSource):
        begins_like_pdf = is_pdf(read_beginning(source, _HEAD_LEN))
    return DocumentPart(path, url, detail, heads=heads, is_pdf=begins_like_pdf)


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
    part = make_document_part(path, url, detail, heads)
    if part.is_pdf is False:
        source = read_source(url, path)
        assert isinstance(source, InlineSource)
        text = decode_text(read_inline(source, path, _ANY_SIZE))
        if text is not None:
            return frame_file(heads, text)
    return part


def _heads(name: object) -> tuple[str, ...]:
    """Returns the lines above the text of a file."""
    return (name,) if isinstance(name, str) and name else ()


def _text(value: object, path: str, expected: str) -> str:
    if not isinstance(value, str) or not value:
        raise invalid(path, expected, value)
    return value
