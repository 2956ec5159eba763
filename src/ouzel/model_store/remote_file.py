"""Describes a file of a repository by the hub's answer to a HEAD request."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfFileMetadata, constants, get_hf_file_metadata, hf_hub_url

from ouzel.model_store.download_progress import FileProgress
from ouzel.model_store.hub_names import check_key

LARGE_BYTES = 8 * 2**20
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    name: str
    url: str
    etag: str  # the SHA-256 of a file in large storage; empty if the hub names none
    size: int  # 0 if the hub names none
    blobs: Path

    @property
    def blob(self) -> Path:
        return self.blobs / self.etag

    @property
    def incomplete(self) -> Path:
        return self.blobs / f"{self.etag}.incomplete"

    @property
    def num_bytes_here(self) -> int:
        return self.incomplete.stat().st_size if self.incomplete.exists() else 0

    @property
    def is_large(self) -> bool:
        """Tells whether Ouzel downloads the file; the hub's library downloads the others."""
        is_within = LARGE_BYTES <= self.size <= constants.MAX_HTTP_DOWNLOAD_SIZE
        return bool(self.etag) and is_within

    @property
    def has_checksum(self) -> bool:
        return _SHA256.fullmatch(self.etag) is not None

    def progress(self, done_bytes: int) -> FileProgress:
        kind = "sha256" if self.has_checksum else "etag"
        return FileProgress(self.name, f"{kind}:{self.etag}", self.size, done_bytes)

    def matches(self, content: Path) -> bool:
        """Tells whether the content has the checksum in the etag, if the etag is a checksum."""
        if not self.has_checksum:
            return True
        with content.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == self.etag


def describe_file(repo_id: str, revision: str, name: str, blobs: Path) -> RemoteFile:
    url = hf_hub_url(repo_id, name, revision=revision)
    metadata: HfFileMetadata = get_hf_file_metadata(url)
    if metadata.etag:
        check_key("etag", metadata.etag)
    return RemoteFile(name, url, metadata.etag or "", metadata.size or 0, blobs)
