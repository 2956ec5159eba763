"""Defines the interface of stored files; importing it loads no database library.

1.  The rules of `store.base` hold: each method is one transaction, and the files of another API key
    do not exist. `read` is an iterator with one transaction for each piece.
2.  A file is visible only when its upload is complete. An upload that breaks off is swept later.
3.  A file that has expired does not exist; it is swept later.
"""

from collections.abc import AsyncGenerator
from typing import Protocol

from ouzel.store.files.records import FilePage, NewFile, StoredFile
from ouzel.store.records import PageRequest


class FileStore(Protocol):
    async def begin(self, new: NewFile) -> None:
        """Begins an upload."""
        ...

    async def add_piece(self, file_id: str, number: int, data: bytes) -> None:
        """Adds the next piece of an upload; the numbers begin at 0.

        Raises FilesFull if all files together would exceed their limit, and FileNotFound for an
        upload that was swept.
        """
        ...

    async def finish(
        self, file_id: str, purpose: str, expires_after_s: float | None = None
    ) -> StoredFile:
        """Makes an upload visible; `expires_after_s` is the time from now to its deletion.

        Raises FileNotFound for an upload that was swept.
        """
        ...

    async def drop(self, file_id: str) -> None:
        """Deletes an upload that has broken off."""
        ...

    async def get(self, file_id: str, key_id: str | None) -> StoredFile | None:
        """Returns the file, or None if the API key has no file with this id."""
        ...

    async def page(self, key_id: str | None, purpose: str | None, page: PageRequest) -> FilePage:
        """Returns a page of the files with a purpose, or of all files, in the order of uploads.

        Raises FileNotFound for an unknown `after`.
        """
        ...

    def read(self, file_id: str, key_id: str | None, first: int = 0) -> AsyncGenerator[bytes, None]:
        """Yields the content in pieces, beginning at the byte `first`.

        Raises FileNotFound, also for a file that is deleted meanwhile.
        """
        ...

    async def delete(self, file_id: str, key_id: str | None) -> bool:
        """Deletes a file, and returns whether the file existed."""
        ...

    async def sweep(self) -> int:
        """Deletes expired files and broken uploads; returns the number of their pieces."""
        ...
