"""Writes an incoming stream of bytes to the store in pieces, so that memory holds one of them."""

from ouzel.api.http.errors import PayloadTooLarge
from ouzel.store.files.base import FileStore
from ouzel.store.files.records import NewFile

PIECE_BYTES = 2**20


class PieceWriter:
    """One file that is being written, and the piece that is not stored yet."""

    def __init__(self, files: FileStore, too_long: PayloadTooLarge, max_bytes: int) -> None:
        """`too_long` is raised for more than `max_bytes`."""
        self._files = files
        self._too_long = too_long
        self._max_bytes = max_bytes
        self._piece = bytearray()
        self._num_pieces = 0
        self._num_bytes = 0
        self.file_id: str | None = None  # None: the file has not begun

    async def begin(self, new: NewFile) -> None:
        self.file_id = new.id
        await self._files.begin(new)

    async def add(self, data: bytes) -> None:
        """Adds bytes. Raises PayloadTooLarge, FilesFull and FileNotFound."""
        self._num_bytes += len(data)
        if self._num_bytes > self._max_bytes:
            raise self._too_long
        self._piece += data
        if len(self._piece) >= PIECE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Stores the last piece."""
        if self._piece:
            assert self.file_id is not None
            await self._files.add_piece(self.file_id, self._num_pieces, bytes(self._piece))
            self._num_pieces += 1
            self._piece.clear()

    async def drop(self) -> None:
        """Deletes a file that has broken off."""
        if self.file_id is not None:
            await self._files.drop(self.file_id)
