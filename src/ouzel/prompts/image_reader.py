"""The pictures of a chat, prepared for the model before the chat is rendered.

Rendering runs in threads and waits for nothing. So a chat whose pictures are not there yet is not rendered: it raises
`ImagesNeeded`, its pictures are loaded and prepared beside the event loop, and it is rendered again where they are
found. Tokens are counted before pixels are decoded: of pictures that are too many for the model only the newest that
fit are. The chat that has all of them is then refused as it is rendered, and one without its oldest turns may be.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import Detail, MediaPart
from ouzel.prompts.media.picture import Picture
from ouzel.prompts.prompt_too_long import too_many_tokens
from ouzel.prompts.vision.base import ImageLayout, ImageProcessor, Tiles
from ouzel.types import ImageInput
from ouzel.worker_threads import NeedsFirst

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_KEPT_BYTES = 64 * 2**20  # of prepared pixels: clients send a chat's pictures again with every turn

_Key = tuple[str, Detail]  # a part's text and its detail


@dataclass(frozen=True, slots=True)
class PreparedPixels:
    values: bytes  # uint8 [tiles, height, width, 3]
    shape: tuple[int, int, int]  # tiles, height, width

    @classmethod
    def of(cls, tiles: Tiles) -> "PreparedPixels":
        num_tiles, height, width, _ = tiles.shape
        return cls(tiles.tobytes(), (num_tiles, height, width))


@dataclass(frozen=True, slots=True)
class PreparedImage:
    picture_digest: bytes
    detail: Detail
    size: tuple[int, int]  # height and width of the picture
    layout: ImageLayout
    pixels: PreparedPixels


@dataclass(frozen=True, slots=True)
class _Prepared:
    images: Mapping[_Key, PreparedImage] = field(default_factory=dict)
    num_tokens: Mapping[_Key, int] = field(default_factory=dict)  # of these and of others that did not fit


_prepared: ContextVar[_Prepared] = ContextVar("prepared_images")


class ImagesNeeded(NeedsFirst):
    """A chat has pictures that are not prepared yet."""

    def __init__(self, reader: "ImageReader", parts: Sequence[MediaPart]) -> None:
        super().__init__(f"{len(parts)} pictures")
        self._reader = reader
        self._parts = parts

    def provided(self) -> AbstractAsyncContextManager[None]:
        return self._reader.prepare(self._parts)


class ImageReader:
    """Belongs to one event loop, but for `prepared`, which is called from many threads."""

    def __init__(self, processor: ImageProcessor, loader: MediaLoader, max_model_len: int) -> None:
        self.processor = processor
        self._loader = loader
        self._max_model_len = max_model_len
        self._kept: OrderedDict[tuple[bytes, Detail], PreparedPixels] = OrderedDict()  # least recently used first
        self._num_kept_bytes = 0

    def close(self) -> None:
        self._loader.close()

    def prepared(self, parts: Sequence[MediaPart]) -> list[PreparedImage]:
        """Returns what has been prepared for the request in scope. Raises ImagesNeeded, PromptTooLong."""
        found, keys = _prepared.get(_Prepared()), [_key(part) for part in parts]
        if all(key in found.num_tokens for key in keys):
            num_tokens = sum(found.num_tokens[key] for key in keys)
            if num_tokens >= self._max_model_len:
                raise too_many_tokens(num_tokens, max_model_len=self._max_model_len, field="messages")
        if any(key not in found.images for key in keys):
            raise ImagesNeeded(self, parts)
        return [found.images[key] for key in keys]

    @asynccontextmanager
    async def prepare(self, parts: Sequence[MediaPart]) -> AsyncGenerator[None, None]:
        """Prepares pictures for what runs within, beside those that are there. Raises InvalidRequest, Overloaded."""
        pictures = await self._loader.load(parts)
        layouts = [self._layout(picture, part) for picture, part in zip(pictures, parts, strict=True)]
        first = self._first_that_fits(layouts)
        fitting, pictures = parts[first:], pictures[first:]
        pixels = await self._pixels(pictures, [part.detail for part in fitting])
        images = {
            _key(part): PreparedImage(picture.digest, part.detail, (picture.height, picture.width), layout, each)
            for part, picture, layout, each in zip(fitting, pictures, layouts[first:], pixels, strict=True)
        }
        before = _prepared.get(_Prepared())
        num_tokens = {_key(part): layout.num_tokens for part, layout in zip(parts, layouts, strict=True)}
        token = _prepared.set(_Prepared({**before.images, **images}, {**before.num_tokens, **num_tokens}))
        try:
            yield
        finally:
            _prepared.reset(token)

    def _first_that_fits(self, layouts: Sequence[ImageLayout]) -> int:
        """Returns the position of the first picture that fits with all that follow it."""
        num_tokens, first = 0, len(layouts)
        while first > 0 and num_tokens + layouts[first - 1].num_tokens < self._max_model_len:
            first -= 1
            num_tokens += layouts[first].num_tokens
        return first

    def _layout(self, picture: Picture, part: MediaPart) -> ImageLayout:
        try:
            return self.processor.layout(picture.width, picture.height, part.detail)
        except ValueError as error:
            raise InvalidRequest(f"is no picture for this model: {error}", field=part.path) from error

    async def _pixels(self, pictures: Sequence[Picture], details: Sequence[Detail]) -> list[PreparedPixels]:
        keys = [(picture.digest, detail) for picture, detail in zip(pictures, details, strict=True)]
        found = {key: self._kept[key] for key in keys if key in self._kept}
        missing = [picture for picture, key in zip(pictures, keys, strict=True) if key not in found]
        details_of: dict[bytes, set[Detail]] = {}
        for digest, detail in keys:
            details_of.setdefault(digest, set()).add(detail)

        def pixels_of(picture: Picture, image: "Image") -> dict[Detail, PreparedPixels]:
            tiles_by_detail = {each: self.processor.tiles(image, each) for each in details_of[picture.digest]}
            return {detail: PreparedPixels.of(tiles) for detail, tiles in tiles_by_detail.items()}

        made = await self._loader.decode(missing, pixels_of)
        for picture, pixels in zip(missing, made, strict=True):
            found |= {(picture.digest, detail): each for detail, each in pixels.items()}
        for key, each in found.items():
            self._keep(key, each)
        return [found[key] for key in keys]

    def _keep(self, key: tuple[bytes, Detail], pixels: PreparedPixels) -> None:
        if key not in self._kept:
            self._num_kept_bytes += len(pixels.values)
        self._kept[key] = pixels
        self._kept.move_to_end(key)
        while self._num_kept_bytes > MAX_KEPT_BYTES:
            self._num_kept_bytes -= len(self._kept.popitem(last=False)[1].values)

    def placed(self, images: Sequence[PreparedImage], places: NDArray[np.int64]) -> tuple[ImageInput, ...]:
        """Returns what the engine gets; `places` are the tokens that stand for features, of one image after another.

        Raises Overloaded where the server holds too many pictures.
        """
        ends = np.cumsum([image.layout.num_tokens for image in images])
        assert len(places) == ends[-1], "nobody but the template writes tokens that stand for images"
        return tuple(
            self._input(image, own) for image, own in zip(images, np.split(places, ends[:-1].tolist()), strict=True)
        )

    def _input(self, image: PreparedImage, places: NDArray[np.int64]) -> ImageInput:
        runs = np.split(places, (np.flatnonzero(np.diff(places) > 1) + 1).tolist())
        normalisation = self.processor.normalisation
        made = ImageInput(
            digest=blake2b(image.picture_digest + image.detail.encode(), digest_size=16).digest(),
            runs=tuple((int(run[0]), len(run)) for run in runs),
            shape=image.pixels.shape,
            pixels=image.pixels.values,
            rescale=normalisation.rescale,
            mean=normalisation.mean,
            std=normalisation.std,
            size=image.size,
            position_grid=image.layout.position_grid,
        )
        self._loader.held_bytes.add(made, len(made.pixels))
        return made


def _key(part: MediaPart) -> _Key:
    return part.url, part.detail
