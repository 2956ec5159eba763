"""Defines the records of files; their contents are streams of bytes."""

import msgspec


class NewFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose upload begins."""

    id: str
    key_id: str | None  # the API key that owns the file; None on a server without keys
    filename: str


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    filename: str
    purpose: str
    size_bytes: int
    created_at: float  # unix seconds
    expires_at: float | None


class FilePage(msgspec.Struct, frozen=True):
    files: tuple[StoredFile, ...]
    has_more: bool
