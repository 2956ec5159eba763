"""Defines the records of uploads in parts."""

from enum import Enum

import msgspec


class UploadStatus(Enum):
    PENDING = "pending"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class NewUpload(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    key_id: str | None  # the API key that owns the upload; None on a server without keys
    filename: str
    purpose: str
    num_bytes: int
    expires_after_s: float  # the time for all parts
    file_expires_after_s: float | None  # the lifetime of the file; None: it stays


class StoredUpload(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    filename: str
    purpose: str
    num_bytes: int
    status: UploadStatus
    created_at: float  # unix seconds
    expires_at: float


class StoredPart(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    num_bytes: int
    created_at: float
