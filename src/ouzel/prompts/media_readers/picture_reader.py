"""The pictures of a chat are loaded, counted as tokens by their sizes, and prepared as the model's family does."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import Detail, MediaPart
from ouzel.prompts.media.picture import Picture
from ouzel.prompts.media_readers.prepared_images import (
    EncoderInput,
    KeptPixels,
    PreparedImage,
    PreparedPixels,
)
from ouzel.prompts.vision.base import ImageLayout, ImageProcessor, TilesOf, chosen_detail


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
    """Belongs to one event loop."""

    def __init__(self, processor: ImageProcessor, loader: MediaLoader, kept: KeptPixels) -> None:
        self._processor = processor
        self._loader = loader
        self._kept = kept

    async def load(self, parts: Sequence[MediaPart], *, are_several: bool) -> list[LoadedPicture]:
        """`are_several` counts the pages of documents, too. Raises InvalidRequest, Overloaded."""
        pictures = await self._loader.load(parts)
        return [
            self._laid_out(
                picture, part, chosen_detail(self._processor, part.detail, are_several=are_several)
            )
            for picture, part in zip(pictures, parts, strict=True)
        ]

    async def prepare(self, loaded: Sequence[LoadedPicture]) -> list[PreparedImage]:
        """Raises InvalidRequest."""
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

    def _laid_out(self, picture: Picture, part: MediaPart, detail: Detail) -> LoadedPicture:
        try:
            return LoadedPicture(
                picture, detail, self._processor.layout(picture.width, picture.height, detail)
            )
        except ValueError as error:
            raise InvalidRequest(
                f"is no picture for this model: {error}", field=part.path
            ) from error

    async def _pixels(self, loaded: Sequence[LoadedPicture]) -> list[PreparedPixels]:
        kept = {each.key: self._kept.get(each.key) for each in loaded}
        found = {key: pixels[0] for key, pixels in kept.items() if pixels is not None}
        missing = [each.picture for each in loaded if each.key not in found]
        details_of: dict[bytes, set[Detail]] = {}
        for each in loaded:
            details_of.setdefault(each.picture.digest, set()).add(each.detail)

        def pixels_of(picture: Picture) -> dict[Detail, PreparedPixels]:
            details = sorted(details_of[picture.digest])
            made = self._loader.decoders.prepare(picture, TilesOf(self._processor, tuple(details)))
            return {
                detail: PreparedPixels.of(tiles)
                for detail, tiles in zip(details, made, strict=True)
            }

        made = await self._loader.decode(missing, pixels_of)
        for picture, by_detail in zip(missing, made, strict=True):
            found |= {(picture.digest, detail): each for detail, each in by_detail.items()}
        for key, own in found.items():
            self._kept.keep(key, (own,))
        return [found[each.key] for each in loaded]
