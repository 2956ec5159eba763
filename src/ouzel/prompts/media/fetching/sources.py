"""Tells from a URL's text where a picture is: in the text itself, on another server, or in a local
file.

A text that contains `base64,` is base64, with or without `data:` before it, as in OpenVINO Model
Server. A text without a scheme is base64 if it decodes to the first bytes of a picture; LMI's chat
schema has such texts. The base64 of a JPEG begins with `/9j/` and looks like a path, so the first
bytes decide before any file is opened.
"""

import binascii
import re
from dataclasses import dataclass, field
from string import hexdigits
from urllib.parse import unquote, unquote_to_bytes

import numpy as np

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import DocumentPart, MediaPart
from ouzel.prompts.media.picture import PictureLimits, check_file_size

_BASE64_MARK = "base64,"
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]{1,31}):")  # a single letter is a drive
_WHITESPACE = b" \t\r\n\f"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_HEX_DIGITS = np.array(
    [int(chr(code), 16) if chr(code) in hexdigits else 255 for code in range(256)], np.uint8
)
_ESCAPES = (
    *((b"%2B", b"+"), (b"%2b", b"+"), (b"%2F", b"/")),
    *((b"%2f", b"/"), (b"%3D", b"="), (b"%3d", b"=")),
)
_HEAD_LEN = 256  # characters, with room for whitespace and escapes
_HEAD_DIGITS = 16  # base64 digits: the 12 bytes that identify a WebP file
# For a JPEG the first two markers: a path that begins with /9j/ seldom spells the second one.
_PICTURE_BEGINNINGS = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff[\xc0-\xfe]|GIF8[79]a|RIFF.{4}WEBP", re.DOTALL
)
_BMP = b"BM"
BARE_FORM = "the base64 of a PNG, JPEG, WebP or GIF"
_FORMS = f"must be a data URL, {BARE_FORM}, an http or https URL, or the path of a file"


@dataclass(frozen=True, slots=True)
class InlineSource:
    text: str = field(repr=False)
    is_base64: bool


@dataclass(frozen=True, slots=True)
class RemoteSource:
    url: str  # begins with http: or https:; the rest is not checked yet


@dataclass(frozen=True, slots=True)
class FileSource:
    file_path: str


@dataclass(frozen=True, slots=True)
class UploadedSource:
    data: bytes = field(repr=False)


Source = InlineSource | RemoteSource | FileSource | UploadedSource


def find_source(part: MediaPart | DocumentPart) -> Source:
    """Returns the source of a part. Raises InvalidRequest."""
    return read_source(part.url, part.path) if part.data is None else UploadedSource(part.data)


def read_source(url: str, path: str) -> Source:
    """Returns the kind of source of a URL. `path` names the part in errors.

    Raises InvalidRequest.
    """
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else ""
    match scheme:
        case "http" | "https":
            return RemoteSource(url.strip())
        case "file":
            return FileSource(_read_file_url(url.strip(), path))
        case "data" if "," not in url:
            raise InvalidRequest(
                "must be a data URL with a comma before its data, given no comma", field=path
            )
    _, mark, text = url.partition(_BASE64_MARK)
    if mark:
        return InlineSource(text, is_base64=True)
    if scheme == "data":
        header, _, text = url.partition(",")
        return InlineSource(text, is_base64=header.lower().endswith(";base64"))
    if found:
        raise InvalidRequest(f"{_FORMS}, given the scheme {scheme!r}", field=path)
    if not url.strip():
        raise InvalidRequest(f"{_FORMS}, given an empty text", field=path)
    return InlineSource(url, is_base64=True) if _is_bare_picture(url) else FileSource(url)


def _is_bare_picture(text: str) -> bool:
    """Tells whether the text is base64 of a picture, by decoding only its beginning."""
    head = text.lstrip()[:_HEAD_LEN].encode("ascii", "replace")
    digits = _base64_digits(head)[:_HEAD_DIGITS]
    if len(digits) < _HEAD_DIGITS:
        return False
    try:
        return _PICTURE_BEGINNINGS.match(binascii.a2b_base64(digits, strict_mode=True)) is not None
    except binascii.Error:
        return False


def is_picture(data: bytes) -> bool:
    """Tells whether a file begins like a picture."""
    return _PICTURE_BEGINNINGS.match(data) is not None or data.startswith(_BMP)


def _read_file_url(url: str, path: str) -> str:
    text = url.partition(":")[2]
    if text.startswith("//"):
        host, slash, rest = text[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            raise InvalidRequest(
                "must be a file URL without a host, as file:///pictures/one.png", field=path
            )
        text = slash + rest
    return unquote(text, errors="surrogateescape")


def read_beginning(source: InlineSource, num_bytes: int) -> bytes:
    """Returns about the first bytes of an inline file; nothing if they cannot be decoded."""
    head = source.text[: 3 * num_bytes].encode("ascii", "replace")
    if not source.is_base64:
        return unquote_to_bytes(head)
    digits = _base64_digits(head)
    try:
        return binascii.a2b_base64(digits[: len(digits) // 4 * 4])
    except binascii.Error:
        return b""


def read_inline(source: InlineSource, path: str, limits: PictureLimits) -> bytes:
    """Returns the bytes of an inline picture. Raises InvalidRequest."""
    try:
        text = source.text.encode("ascii")
    except UnicodeEncodeError as error:
        complaint = f"must be a data URL of ASCII characters, given {source.text[error.start]!r}"
        raise InvalidRequest(f"{complaint} at {error.start} of its data", field=path) from None
    decode = _from_base64 if source.is_base64 else _from_percents
    return decode(text, path, limits)


def _from_base64(text: bytes, path: str, limits: PictureLimits) -> bytes:
    digits = _base64_digits(text)
    check_file_size(len(digits) * 3 // 4, path, limits)
    try:
        data = binascii.a2b_base64(digits + b"=" * (-len(digits) % 4), strict_mode=True)
    except binascii.Error as error:
        raise InvalidRequest(f"must have valid base64: {error}", field=path) from None
    return data


def _base64_digits(text: bytes) -> bytes:
    """Returns the digits in the standard alphabet, without whitespace and padding, with URL escapes
    resolved.
    """
    for escaped, character in _ESCAPES if b"%" in text else ():
        text = text.replace(escaped, character)
    return text.translate(_URL_SAFE, delete=_WHITESPACE).rstrip(b"=")


def _from_percents(text: bytes, path: str, limits: PictureLimits) -> bytes:
    """Decodes percent escapes like `unquote_to_bytes`, which takes seconds for millions of
    escapes.
    """
    check_file_size(len(text) - 2 * text.count(b"%"), path, limits)
    characters = np.frombuffer(text + b"  ", np.uint8)
    digits = _HEX_DIGITS[characters]
    escapes = np.flatnonzero(
        (characters[:-2] == ord("%")) & (digits[1:-1] < 16) & (digits[2:] < 16)
    )
    data = characters.copy()
    data[escapes] = digits[escapes + 1] * 16 + digits[escapes + 2]
    return np.delete(data[:-2], np.concatenate((escapes + 1, escapes + 2))).tobytes()
