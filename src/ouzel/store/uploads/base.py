"""Defines the interface of uploads in parts; importing it loads no database library.

1.  The rules of `store.base` hold: each method is one transaction, and the uploads of another API
    key do not exist. `read` is an iterator with one transaction for each piece.
2.  The bytes of a part are added as pieces of a file with the part's id (`store.files`). Such a
    file is never visible.
3.  A completed upload is a file; its content are its parts, in the order of the completion.
4.  An upload that is not completed in time expires, and its parts are swept.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from ouzel.store.files.records import StoredFile
from ouzel.store.uploads.records import NewUpload, StoredPart, StoredUpload


class UploadStore(Protocol):
    async def create(self, new: NewUpload) -> StoredUpload:
        """Creates an upload without parts."""
        ...

    async def get(self, upload_id: str, key_id: str | None) -> StoredUpload | None:
        """Returns the upload, or None if the API key has no upload with this id."""
        ...

    async def finish_part(self, upload_id: str, part_id: str, key_id: str | None) -> StoredPart:
        """Adds a part whose bytes are stored. Raises UploadNotFound and UploadEnded."""
        ...

    async def parts(self, upload_id: str, part_ids: Sequence[str]) -> list[StoredPart]:
        """Returns the parts of an upload with these ids, in any order."""
        ...

    def read(self, upload_id: str, part_ids: Sequence[str]) -> AsyncGenerator[bytes, None]:
        """Yields the content of parts in pieces. Raises FileNotFound for a part that is swept."""
        ...

    async def complete(
        self, upload_id: str, key_id: str | None, file_id: str, part_ids: Sequence[str]
    ) -> tuple[StoredUpload, StoredFile]:
        """Makes the parts a file, and deletes the other parts.

        The parts must be parts of the upload, each given once. Raises UploadNotFound and
        UploadEnded.
        """
        ...

    async def cancel(self, upload_id: str, key_id: str | None) -> StoredUpload:
        """Cancels an upload and deletes its parts. Raises UploadNotFound and UploadEnded."""
        ...

    async def sweep(self) -> None:
        """Ends uploads that have expired, and forgets uploads that ended long ago."""
        ...
