"""Defines the objects of the Files API, as OpenAI defines them, and the fields of an upload."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.endpoint.object_list import ObjectList
from ouzel.errors import InvalidRequest
from ouzel.store.files.records import StoredFile
from ouzel.wire.validation_errors import show_value

PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
MIN_EXPIRY_S, MAX_EXPIRY_S = 3600, 30 * 86400
_ANCHOR = "created_at"
_MAX_DIGITS = 12


class FileObject(msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="file"):
    id: str
    bytes: int
    created_at: int  # unix seconds
    expires_at: int | UnsetType = UNSET
    filename: str
    purpose: str
    status: Literal["processed"] = "processed"

    @classmethod
    def of(cls, file: StoredFile) -> "FileObject":
        return cls(
            id=file.id,
            bytes=file.size_bytes,
            created_at=int(file.created_at),
            expires_at=UNSET if file.expires_at is None else int(file.expires_at),
            filename=file.filename,
            purpose=file.purpose,
        )


class FileList(ObjectList[FileObject], frozen=True):
    pass


class DeletedFile(msgspec.Struct, frozen=True, tag_field="object", tag="file"):
    id: str
    deleted: bool = True


def check_purpose(purpose: str | None) -> str:
    """Returns the purpose of an upload. Raises InvalidRequest."""
    if purpose is None:
        raise InvalidRequest("is required", field="purpose")
    if purpose not in PURPOSES:
        raise InvalidRequest(
            f"must be one of {', '.join(PURPOSES)}, given {show_value(purpose)}", field="purpose"
        )
    return purpose


def read_expiry(fields: dict[str, str]) -> float | None:
    """Returns the seconds after which a file expires; None: never. Raises InvalidRequest."""
    anchor, seconds = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    if anchor != _ANCHOR:
        raise InvalidRequest(
            f"must be {_ANCHOR}, given {show_value(anchor)}", field="expires_after[anchor]"
        )
    is_number = seconds is not None and seconds.isascii() and seconds.isdecimal()
    if seconds is None or not is_number or len(seconds) > _MAX_DIGITS:
        raise InvalidRequest(
            f"must be an integer, given {show_value(seconds)}", field="expires_after[seconds]"
        )
    if not MIN_EXPIRY_S <= int(seconds) <= MAX_EXPIRY_S:
        raise InvalidRequest(
            f"must be between {MIN_EXPIRY_S} and {MAX_EXPIRY_S}, given {int(seconds)}",
            field="expires_after[seconds]",
        )
    return float(seconds)
