"""Indexes one file: reads its text, cuts it into chunks, makes their vectors, stores both."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Literal

import msgspec
import numpy as np

from ouzel.hosted_tools.file_search.chunking import (
    Atom,
    Chunk,
    Outline,
    cut_atoms,
    divide_by_sections,
    divide_static,
    make_chunk,
    split_sections,
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
        errors of the embedder, FileNotFound, VectorStoresFull and StoreUnavailable.
        """
        text = await self._extractor.read_text(job.filename, await self._read(job))
        part = position = 0
        async for chunks in self.divide(text, _strategy.decode(job.strategy), job.model):
            for first in range(0, len(chunks), _CHUNKS_AT_ONCE):
                some = chunks[first : first + _CHUNKS_AT_ONCE]
                if not await self._add(job, text, some, part=part, first=position):
                    return False
                part, position = part + 1, position + len(some)
        return await self._store.complete(job.number)

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

    async def divide(
        self, text: str, strategy: Strategy, model: str
    ) -> AsyncGenerator[list[Chunk], None]:
        """Cuts a text into chunks for a model, a section at a time."""
        most = await self._embedder.max_tokens(model)
        max_window = max(most - _HEADING_TOKENS, _LEAST_WINDOW)

        async def count_tokens(texts: Sequence[str]) -> list[int]:
            return await self._embedder.count_tokens(model, texts)

        static = strategy.static
        if static is None:
            max_window = min(max_window, AUTO_WINDOW_TOKENS)
            max_atom = max_window // _SHARE_OF_ATOM
        else:
            max_atom = min(max_window, static.max_chunk_size_tokens // _SHARE_OF_ATOM)

        def make_chunks(atoms: list[Atom]) -> list[Chunk]:
            if static is None:
                groups = divide_by_sections(atoms, AUTO_CHUNK_TOKENS)
            else:
                groups = divide_static(atoms, static)
            return [
                make_chunk(group, max_window)
                for group in groups
                if text[group[0].start : group[-1].end].strip()
            ]

        outline = Outline()
        for section in split_sections(text):
            atoms = await cut_atoms(text, section, outline, count_tokens, max_atom)
            yield await asyncio.to_thread(make_chunks, atoms)

    async def _add(
        self, job: IndexJob, text: str, chunks: Sequence[Chunk], *, part: int, first: int
    ) -> bool:
        """Stores chunks; returns False if the file is gone. Raises VectorStoresFull."""
        windows, positions = [], []
        for position, chunk in enumerate(chunks, start=first):
            title = write_title(job.filename, chunk.heading)
            for start, end in chunk.windows:
                windows.append(f"{title}\n{text[start:end]}")
                positions.append(position)
        new_chunks = await asyncio.to_thread(_write_chunks, job.filename, text, chunks, first)
        vectors = await self._embedder.embed(job.model, windows, "document", key_id=job.key_id)
        return await self._store.add_chunks(
            job.number,
            part,
            new_chunks,
            positions=np.array(positions, "<i4").tobytes(),
            vectors=vectors.astype("<f2").tobytes(),
        )


def _write_chunks(filename: str, text: str, chunks: Sequence[Chunk], first: int) -> list[NewChunk]:
    """Returns chunks as they are stored; `first` is the position of the first one."""
    written = []
    for position, chunk in enumerate(chunks, start=first):
        body = text[chunk.start : chunk.end]
        words = write_words(f"{write_title(filename, chunk.heading)}\n{body}")
        written.append(
            NewChunk(
                position=position,
                start=chunk.start,
                heading=chunk.heading,
                text=body,
                words=words,
            )
        )
    return written


def write_title(filename: str, heading: str) -> str:
    """Returns the line before a chunk, which tells vectors and words the subject."""
    return f"{filename}: {heading}" if heading else filename
