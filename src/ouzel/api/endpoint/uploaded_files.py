"""Opens the uploaded files that messages name. A request finds only files of its API key."""

import asyncio
from collections.abc import Mapping, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.exchange import get_exchange
from ouzel.config import MediaConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import FileSource, HeldBytes, NamedFile, OpenedFile, decode_text, use_files
from ouzel.store.base import Store
from ouzel.store.errors import FileNotFound, NamedFileNotFound
from ouzel.store.files.base import FileStore


class UploadedFiles:
    """Opens files of the store, within limits of one file and of all open files."""

    def __init__(self, store: Store | None, media: MediaConfig) -> None:
        self._store = store
        self._max_bytes = media.max_media_bytes
        self._held_bytes = HeldBytes(media.max_media_bytes_total)

    def of_key(self, key_id: str | None) -> FileSource | None:
        """Returns the files of an API key; None if this server stores no files."""
        if self._store is None:
            return None
        return _FilesOfKey(self._store.files, key_id, self._max_bytes, self._held_bytes)


class FileAccess:
    """Lets the messages of a request name the files of its API key."""

    def __init__(self, app: ASGIApp, files: UploadedFiles) -> None:
        self._app = app
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with use_files(self._files.of_key(get_exchange(scope).key_id)):
            await self._app(scope, receive, send)


class _Space:
    """Stands for the memory of an open file, which is counted until nobody refers to it."""


class _FilesOfKey:
    """Implements `FileSource` on the store."""

    def __init__(
        self, files: FileStore, key_id: str | None, max_bytes: int, held_bytes: HeldBytes
    ) -> None:
        self._files = files
        self._key_id = key_id
        self._max_bytes = max_bytes
        self._held_bytes = held_bytes

    async def open(self, named: Sequence[NamedFile]) -> Mapping[str, OpenedFile]:
        opened: dict[str, OpenedFile] = {}
        for each in named:
            if each.file_id not in opened:
                opened[each.file_id] = await self._open(each)
        return opened

    async def _open(self, named: NamedFile) -> OpenedFile:
        file = await self._files.get(named.file_id, self._key_id)
        if file is None:
            raise NamedFileNotFound(named.file_id, named.path)
        if file.size_bytes > self._max_bytes:
            raise InvalidRequest(
                f"must name a file of <= {self._max_bytes} bytes (max_media_bytes), "
                f"given {file.size_bytes}",
                field=named.path,
            )
        space = _Space()
        self._held_bytes.add(space, file.size_bytes)
        data = bytearray()
        try:
            async for piece in self._files.read(file.id, self._key_id):
                data += piece
        except FileNotFound:
            raise NamedFileNotFound(named.file_id, named.path) from None
        content = await asyncio.to_thread(_decode, data)
        return OpenedFile(file.id, file.filename, content, space)


def _decode(data: bytearray) -> bytes | str:
    """Returns the text of a file, or its bytes if it is no text."""
    whole = bytes(data)
    text = decode_text(whole)
    return whole if text is None else text
