"""Reads image files, which go to the server inside a message."""

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.user_file import read_bytes

_KINDS = "PNG, JPEG, GIF, WebP, BMP or TIFF"
_BEGINNING_BYTES = 16
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)


@dataclass(frozen=True, slots=True)
class Picture:
    name: str  # name of the file, for people
    media_type: str
    content: bytes

    def content_part(self) -> dict[str, object]:
        url = f"data:{self.media_type};base64,{b64encode(self.content).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}

    @property
    def description(self) -> str:
        kind = self.media_type.partition("/")[2]
        return f"{self.name} ({kind}, {len(self.content) / 1024:.3g} KiB)"


def read_picture(path: str) -> Picture:
    """Reads an image file. Raises ChatError for an unreadable file or another kind of file."""
    # The beginning is read first, because a file of another kind may have any size.
    media_type = _media_type(read_bytes(path, max_bytes=_BEGINNING_BYTES))
    if media_type is None:
        raise ChatError(f"{harmless_line(path)}: must be a picture: {_KINDS}")
    return Picture(harmless_line(Path(path).name), media_type, read_bytes(path))


def _media_type(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if content.startswith(beginning)), None)
