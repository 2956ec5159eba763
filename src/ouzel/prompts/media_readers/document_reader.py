"""Loads the PDFs of a chat, counts the tokens of their pages, and prepares the pages like
pictures.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.document import Document
from ouzel.prompts.media.document_loader import DocumentLoader
from ouzel.prompts.media.parts import Detail, DocumentPart
from ouzel.prompts.media_readers.prepared_images import (
    PixelCache,
    PreparedImage,
    PreparedPixels,
    make_encoder_inputs,
)
from ouzel.prompts.vision.base import ImageLayout, ImageProcessor, choose_detail

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    document: Document
    detail: Detail
    layouts: tuple[ImageLayout, ...]  # one for each page

    @property
    def num_tokens(self) -> int:
        return sum(layout.num_tokens for layout in self.layouts)

    def key(self, number: int) -> tuple[bytes, int, Detail]:
        """Returns the cache key of one page."""
        return self.document.file.digest, number, self.detail


class DocumentReader:
    """Loads and prepares PDFs. It belongs to one event loop."""

    def __init__(
        self, processor: ImageProcessor, loader: DocumentLoader, cache: PixelCache
    ) -> None:
        self._processor = processor
        self._loader = loader
        self._cache = cache

    def close(self) -> None:
        self._loader.close()

    async def load(
        self, parts: Sequence[DocumentPart], *, num_pictures: int
    ) -> list[LoadedDocument]:
        """Loads the documents. `num_pictures` is the number of pictures beside them.

        Raises InvalidRequest or Overloaded.
        """
        documents = await self._loader.load(parts, num_pictures=num_pictures)
        are_several = num_pictures + sum(len(document.pages) for document in documents) > 1
        loaded: list[LoadedDocument] = []
        for document, part in zip(documents, parts, strict=True):
            detail = choose_detail(self._processor, part.detail, are_several=are_several)
            loaded.append(self._lay_out(document, part, detail))
        return loaded

    def _lay_out(self, document: Document, part: DocumentPart, detail: Detail) -> LoadedDocument:
        try:
            layouts = tuple(
                self._processor.layout(width, height, detail) for width, height in document.pages
            )
        except ValueError as error:
            raise InvalidRequest(
                f"has a page that this model cannot take: {error}", field=part.path
            ) from error
        return LoadedDocument(document, detail, layouts)

    async def prepare(self, loaded: Sequence[LoadedDocument]) -> list[tuple[PreparedImage, ...]]:
        """Prepares the pages of each document. Raises InvalidRequest."""
        return [self._prepared(each, await self._pixels(each)) for each in loaded]

    async def _pixels(self, loaded: LoadedDocument) -> list[tuple[PreparedPixels, ...]]:
        """Returns the pieces of each page."""
        numbers = range(len(loaded.layouts))
        stored = {number: self._cache.get(loaded.key(number)) for number in numbers}
        found = {number: pieces for number, pieces in stored.items() if pieces is not None}
        missing = [number for number in numbers if number not in found]

        def prepare(image: "Image") -> tuple[PreparedPixels, ...]:
            pieces = self._processor.pieces(image, loaded.detail)
            return tuple(PreparedPixels.from_tiles(tiles) for tiles in pieces)

        if missing:
            made = await self._loader.render(loaded.document, missing, prepare)
            found |= zip(missing, made, strict=True)
        for number in numbers:
            self._cache.add(loaded.key(number), found[number])
        return [found[number] for number in numbers]

    def _prepared(
        self, loaded: LoadedDocument, pixels: Sequence[tuple[PreparedPixels, ...]]
    ) -> tuple[PreparedImage, ...]:
        made: list[PreparedImage] = []
        pages = zip(loaded.layouts, loaded.document.pages, pixels, strict=True)
        for number, (layout, (width, height), pieces) in enumerate(pages):
            inputs = make_encoder_inputs(
                _digest(loaded, number),
                layout,
                pieces,
                (height, width),
                self._processor.normalisation,
            )
            made.append(PreparedImage(self._processor.placeholder, layout.text, inputs))
        return tuple(made)


def _digest(loaded: LoadedDocument, number: int) -> bytes:
    file = loaded.document.file
    source = b"page" + struct.pack("<q", number) + file.digest + loaded.detail.encode()
    return blake2b(source, digest_size=16).digest()
