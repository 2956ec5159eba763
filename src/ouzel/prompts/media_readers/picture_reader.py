"""Loads the pictures of a chat, counts their tokens by their sizes, and prepares them for the
model's family.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import Detail, MediaPart
from ouzel.prompts.media.picture import Picture
from ouzel.prompts.media_readers.prepared_images import (
    EncoderInput,
    PixelCache,
    PreparedImage,
    PreparedPixels,
)
from ouzel.prompts.vision.base import ImageLayout, ImageProcessor, TileMaker, choose_detail


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

    def _prepared(self, loaded: LoadedPicture, pixels: PreparedPixels) -> PreparedImage:
        picture, layout = loaded.picture, loaded.layout
        own = EncoderInput(
            digest=blake2b(picture.digest + loaded.detail.encode(), digest_size=16).digest(),
            num_tokens=layout.num_tokens,
            size=(picture.height, picture.width),
            pixels=pixels,
            normalisation=self._processor.normalisation,
            position_grid=layout.position_grid,
        )
        return PreparedImage(self._processor.placeholder, layout.text, (own,))

    def _lay_out(self, picture: Picture, part: MediaPart, detail: Detail) -> LoadedPicture:
        try:
            return LoadedPicture(
                picture, detail, self._processor.layout(picture.width, picture.height, detail)
            )
        except ValueError as error:
            raise InvalidRequest(
                f"cannot be taken by this model: {error}", field=part.path
            ) from error

    async def _pixels(self, loaded: Sequence[LoadedPicture]) -> list[PreparedPixels]:
        stored = {each.key: self._cache.get(each.key) for each in loaded}
        found = {key: pixels[0] for key, pixels in stored.items() if pixels is not None}
        missing = [each.picture for each in loaded if each.key not in found]
        details_by_digest: dict[bytes, set[Detail]] = {}
        for each in loaded:
            details_by_digest.setdefault(each.picture.digest, set()).add(each.detail)

        def prepare(picture: Picture) -> dict[Detail, PreparedPixels]:
            details = sorted(details_by_digest[picture.digest])
            made = self._loader.decoders.prepare(
                picture, TileMaker(self._processor, tuple(details))
            )
            return {
                detail: PreparedPixels.from_tiles(tiles)
                for detail, tiles in zip(details, made, strict=True)
            }

        made = await self._loader.decode(missing, prepare)
        for picture, by_detail in zip(missing, made, strict=True):
            found |= {(picture.digest, detail): each for detail, each in by_detail.items()}
        for key, own in found.items():
            self._cache.add(key, (own,))
        return [found[each.key] for each in loaded]
