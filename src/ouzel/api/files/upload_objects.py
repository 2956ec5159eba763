"""Defines the bodies and the answers of the Uploads API, as OpenAI defines them."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ouzel.api.files.objects import MAX_EXPIRY_S, MIN_EXPIRY_S, FileObject
from ouzel.store.uploads.records import StoredPart, StoredUpload

MAX_UPLOAD_BYTES = 8 * 2**30
MAX_PART_BYTES = 64 * 2**20
MAX_PARTS = 10_000
Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]


class FileExpiresAfter(msgspec.Struct, kw_only=True):
    anchor: Annotated[Literal["created_at"], Meta(description="The time counts from here.")]
    seconds: Annotated[
        int,
        Meta(ge=MIN_EXPIRY_S, le=MAX_EXPIRY_S, description="Seconds until the file is deleted."),
    ]


class CreateUploadRequest(msgspec.Struct, kw_only=True):
    bytes: Annotated[
        int, Meta(ge=0, le=MAX_UPLOAD_BYTES, description="The length of the whole file.")
    ]
    filename: Annotated[str, Meta(min_length=1, max_length=1024, description="The file's name.")]
    mime_type: Annotated[str, Meta(description="Not used: the content shows the type of the file.")]
    purpose: Annotated[Purpose, Meta(description="The purpose of the file.")]
    expires_after: Annotated[
        FileExpiresAfter | None,
        Meta(description="The file is deleted after this time; null keeps it."),
    ] = None


class CompleteUploadRequest(msgspec.Struct, kw_only=True):
    part_ids: Annotated[
        list[str], Meta(max_length=MAX_PARTS, description="The parts in the order of the file.")
    ]
    md5: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-fA-F]{32}$")] | None,
        Meta(description="The MD5 checksum of the file, in hexadecimal; another one is a 400."),
    ] = None


class Upload(msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="upload"):
    id: str
    bytes: int
    created_at: int  # unix seconds
    expires_at: int
    filename: str
    purpose: str
    status: Literal["pending", "completed", "cancelled", "expired"]
    file: FileObject | UnsetType = UNSET

    @classmethod
    def of(cls, upload: StoredUpload, file: FileObject | UnsetType = UNSET) -> "Upload":
        return cls(
            id=upload.id,
            bytes=upload.num_bytes,
            created_at=int(upload.created_at),
            expires_at=int(upload.expires_at),
            filename=upload.filename,
            purpose=upload.purpose,
            status=upload.status.value,
            file=file,
        )


class UploadPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="upload.part"):
    id: str
    created_at: int  # unix seconds
    upload_id: str

    @classmethod
    def of(cls, part: StoredPart, upload_id: str) -> "UploadPart":
        return cls(id=part.id, created_at=int(part.created_at), upload_id=upload_id)
