"""Indexes one file: reads its text, cuts it into chunks, makes their vectors, stores both."""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from ouzel.hosted_tools.file_search.chunking import (
    Chunk,
    cut_atoms,
    divide_by_sections,
    divide_static,
    make_chunk,
)
from ouzel.hosted_tools.file_search.embedder import Embedder
from ouzel.hosted_tools.file_search.errors import UnreadableFile
from ouzel.hosted_tools.file_search.extraction import MAX_FILE_BYTES, Extractor
from ouzel.hosted_tools.file_search.records import (
    AUTO_CHUNK_TOKENS,
    AUTO_WINDOW_TOKENS,
    StaticChunking,
)
from ouzel.hosted_tools.file_search.words import write_words
from ouzel.store.files.base import FileStore
from ouzel.store.vector_stores.base import VectorStores
from ouzel.store.vector_stores.records import IndexJob, NewChunk

_CHUNKS_AT_ONCE = 64  # chunks whose vectors are made and stored together
_HEADING_TOKENS = 32  # room for the headings before a text
_LEAST_WINDOW = 16
_SHARE_OF_ATOM = 4  # an atom has at most this part of a window


class Strategy(msgspec.Struct, frozen=True):
    """The stored chunking strategy of a file."""

    type: Literal["auto", "static"] = "auto"
    static: StaticChunking | None = None


_strategy = msgspec.json.Decoder(Strategy)


class FileIndexing:
    """Belongs to one event loop."""

    def __init__(
        self, store: VectorStores, files: FileStore, embedder: Embedder, extractor: Extractor
    ) -> None:
        self._store = store
        self._files = files
        self._embedder = embedder
        self._extractor = extractor

    async def index(self, job: IndexJob) -> bool:
        """Indexes a file that this server owns.

        Returns False if the file was deleted or cancelled meanwhile. Raises UnreadableFile, the
        errors of the embedder, FileNotFound and StoreUnavailable.
        """
        text = await self._extractor.read_text(job.filename, await self._read(job))
        chunks = await self.divide(text, _strategy.decode(job.strategy), job.model)
        num_bytes = 0
        for part, first in enumerate(range(0, len(chunks), _CHUNKS_AT_ONCE)):
            some = chunks[first : first + _CHUNKS_AT_ONCE]
            stored = await self._add(job, text, some, part=part, first=first)
            if stored is None:
                return False
            num_bytes += stored
        return await self._store.complete(job.number, num_bytes)

    def close(self) -> None:
        """Ends the process that reads files."""
        self._extractor.close()

    async def _read(self, job: IndexJob) -> bytes:
        data = bytearray()
        async for piece in self._files.read(job.file_id, job.key_id):
            data += piece
            if len(data) > MAX_FILE_BYTES:
                raise UnreadableFile(
                    "invalid_file", f"a file in a vector store must have <= {MAX_FILE_BYTES} bytes"
                )
        return bytes(data)

    async def divide(self, text: str, strategy: Strategy, model: str) -> list[Chunk]:
        """Cuts a text into chunks for a model."""
        most = await self._embedder.max_tokens(model)
        max_window = max(most - _HEADING_TOKENS, _LEAST_WINDOW)

        async def count_tokens(texts: Sequence[str]) -> list[int]:
            return await self._embedder.count_tokens(model, texts)

        if strategy.static is not None:
            max_atom = min(max_window, strategy.static.max_chunk_size_tokens // _SHARE_OF_ATOM)
            atoms = await cut_atoms(text, count_tokens, max_atom)
            groups = divide_static(atoms, strategy.static)
        else:
            max_window = min(max_window, AUTO_WINDOW_TOKENS)
            atoms = await cut_atoms(text, count_tokens, max_window // _SHARE_OF_ATOM)
            groups = divide_by_sections(atoms, AUTO_CHUNK_TOKENS)
        return [
            make_chunk(group, max_window)
            for group in groups
            if text[group[0].start : group[-1].end].strip()
        ]

    async def _add(
        self, job: IndexJob, text: str, chunks: Sequence[Chunk], *, part: int, first: int
    ) -> int | None:
        """Stores chunks; returns the number of their bytes, None if the file is gone."""
        windows, positions = [], []
        new_chunks = []
        for position, chunk in enumerate(chunks, start=first):
            title = write_title(job.filename, chunk.heading)
            for start, end in chunk.windows:
                windows.append(f"{title}\n{text[start:end]}")
                positions.append(position)
            body = text[chunk.start : chunk.end]
            new_chunks.append(
                NewChunk(
                    position=position,
                    start=chunk.start,
                    heading=chunk.heading,
                    text=body,
                    words=write_words(f"{title}\n{body}"),
                )
            )
        vectors = await self._embedder.embed(job.model, windows, "document", key_id=job.key_id)
        encoded = vectors.astype("<f2").tobytes()
        is_stored = await self._store.add_chunks(
            job.number,
            part,
            new_chunks,
            positions=np.array(positions, "<i4").tobytes(),
            vectors=encoded,
        )
        num_text_bytes = sum(len(chunk.text.encode()) for chunk in new_chunks)
        return len(encoded) + num_text_bytes if is_stored else None


def write_title(filename: str, heading: str) -> str:
    """Returns the line before a chunk, which tells vectors and words the subject."""
    return f"{filename}: {heading}" if heading else filename
