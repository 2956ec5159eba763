"""Loads the pictures of a chat, counts their tokens by their sizes, and prepares them for the
model's family.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import Detail, MediaPart
from ouzel.prompts.media.picture import Picture
from ouzel.prompts.media_readers.prepared_images import (
    PixelCache,
    PreparedImage,
    PreparedPixels,
    make_encoder_inputs,
)
from ouzel.prompts.vision.base import ImageLayout, ImageProcessor, PieceMaker, choose_detail

_Pieces = tuple[PreparedPixels, ...]  # one picture


@dataclass(frozen=True, slots=True)
class LoadedPicture:
    picture: Picture
    detail: Detail
    layout: ImageLayout

    @property
    def num_tokens(self) -> int:
        return self.layout.num_tokens

    @property
    def key(self) -> tuple[bytes, Detail]:
        return self.picture.digest, self.detail


class PictureReader:
    """Loads and prepares pictures. It belongs to one event loop."""

    def __init__(self, processor: ImageProcessor, loader: MediaLoader, cache: PixelCache) -> None:
        self._processor = processor
        self._loader = loader
        self._cache = cache

    async def load(self, parts: Sequence[MediaPart], *, are_several: bool) -> list[LoadedPicture]:
        """Loads the pictures. `are_several` tells whether the request has several, including pages
        of documents.

        Raises InvalidRequest or Overloaded.
        """
        pictures = await self._loader.load(parts)
        loaded: list[LoadedPicture] = []
        for picture, part in zip(pictures, parts, strict=True):
            detail = choose_detail(self._processor, part.detail, are_several=are_several)
            loaded.append(self._lay_out(picture, part, detail))
        return loaded

    async def prepare(self, loaded: Sequence[LoadedPicture]) -> list[PreparedImage]:
        """Decodes and prepares the pictures. Raises InvalidRequest."""
        pixels = await self._pixels(loaded)
        return [self._prepared(each, own) for each, own in zip(loaded, pixels, strict=True)]

    def _prepared(self, loaded: LoadedPicture, pieces: _Pieces) -> PreparedImage:
        picture, layout = loaded.picture, loaded.layout
        digest = blake2b(picture.digest + loaded.detail.encode(), digest_size=16).digest()
        size = (picture.height, picture.width)
        inputs = make_encoder_inputs(digest, layout, pieces, size, self._processor.normalisation)
        return PreparedImage(self._processor.placeholder, layout.text, inputs)

    def _lay_out(self, picture: Picture, part: MediaPart, detail: Detail) -> LoadedPicture:
        try:
            return LoadedPicture(
                picture, detail, self._processor.layout(picture.width, picture.height, detail)
            )
        except ValueError as error:
            raise InvalidRequest(
                f"cannot be taken by this model: {error}", field=part.path
            ) from error

    async def _pixels(self, loaded: Sequence[LoadedPicture]) -> list[_Pieces]:
        stored = {each.key: self._cache.get(each.key) for each in loaded}
        found = {key: pieces for key, pieces in stored.items() if pieces is not None}
        missing = [each.picture for each in loaded if each.key not in found]
        num_pieces: dict[bytes, dict[Detail, int]] = {}  # keys are digests of pictures
        for each in loaded:
            counts = num_pieces.setdefault(each.picture.digest, {})
            counts[each.detail] = len(each.layout.piece_tokens) or 1

        def prepare(picture: Picture) -> dict[Detail, _Pieces]:
            counts = num_pieces[picture.digest]
            maker = PieceMaker(self._processor, tuple(counts))
            made = map(PreparedPixels.from_tiles, self._loader.decoders.prepare(picture, maker))
            return {detail: tuple(islice(made, count)) for detail, count in counts.items()}

        made = await self._loader.decode(missing, prepare)
        for picture, by_detail in zip(missing, made, strict=True):
            found |= {(picture.digest, detail): pieces for detail, pieces in by_detail.items()}
        for key, pieces in found.items():
            self._cache.add(key, pieces)
        return [found[each.key] for each in loaded]
