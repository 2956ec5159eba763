"""Connects batches with the stored files."""

from collections.abc import AsyncIterator

from ouzel.batches.line_app import InputFile
from ouzel.store.base import Store
from ouzel.store.files.records import NewFile


class StoredBatchFiles:
    """Implements `BatchFiles` with the files of the store."""

    def __init__(self, store: Store) -> None:
        self._files = store.files

    async def find(self, file_id: str, key_id: str | None) -> InputFile | None:
        stored = await self._files.get(file_id, key_id)
        return None if stored is None else InputFile(stored.purpose, stored.size_bytes)

    def read(self, file_id: str, key_id: str | None) -> AsyncIterator[bytes]:
        return self._files.read(file_id, key_id)

    async def write(
        self,
        file_id: str,
        key_id: str | None,
        *,
        filename: str,
        pieces: AsyncIterator[bytes],
    ) -> None:
        await self._files.begin(NewFile(id=file_id, key_id=key_id, filename=filename))
        number = 0
        async for piece in pieces:
            await self._files.add_piece(file_id, number, piece)
            number += 1

    async def drop(self, file_id: str) -> None:
        await self._files.drop(file_id)
