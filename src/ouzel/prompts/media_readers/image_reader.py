"""Prepares the pictures, videos, documents and sounds of a chat for the model. A prepared sound
counts as an image here.

Protocol
1. Chats are rendered in threads, which must not wait. A chat whose images are not prepared
   raises `ImagesNeeded` instead of being rendered.
2. The caller prepares the images outside the event loop (`ImagesNeeded.provide_prerequisite`), and
   renders the chat again within that context, where the images are found.
3. Tokens are counted before pixels are decoded. If there are too many, only the newest images
   that fit are prepared. The complete chat is then refused, but a chat without its oldest turns can
   be rendered.
"""

from collections.abc import AsyncGenerator, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ouzel.prompts.media.document_loader import DocumentLoader
from ouzel.prompts.media.documents import can_read_documents
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import (
    ContentPart,
    DocumentPart,
    MediaPart,
    SoundPart,
    VideoPart,
)
from ouzel.prompts.media.video_loader import VideoLoader
from ouzel.prompts.media_readers.document_reader import DocumentReader, LoadedDocument
from ouzel.prompts.media_readers.picture_reader import LoadedPicture, PictureReader
from ouzel.prompts.media_readers.prepared_images import PreparedImage, make_pixel_cache
from ouzel.prompts.media_readers.sound_reader import LoadedSound, SoundReader
from ouzel.prompts.media_readers.video_reader import LoadedVideo, VideoReader
from ouzel.prompts.prompt_too_long import too_many_tokens
from ouzel.prompts.vision.base import ImageProcessor, NumbersPictures, WritesPicturesAsLines
from ouzel.prompts.vision.video import VideoProcessor
from ouzel.types.engine_request import MediaInput
from ouzel.worker_threads import PrerequisiteMissing

Images = tuple[PreparedImage, ...]  # the images of one content part

_Loaded = LoadedPicture | LoadedVideo | LoadedDocument | LoadedSound


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Holds the images that are prepared for the request in scope."""

    images: Mapping[Hashable, Images] = field(default_factory=dict)  # keys are the keys of parts
    # of the prepared images, and of images that did not fit
    num_tokens: Mapping[Hashable, int] = field(default_factory=dict)


_prepared: ContextVar[_Prepared] = ContextVar("prepared_images")


class ImagesNeeded(PrerequisiteMissing):
    """Raised by the rendering of a chat with images that are not prepared yet."""

    def __init__(self, reader: "ImageReader", parts: Sequence[ContentPart]) -> None:
        super().__init__(f"{len(parts)} pictures or sounds")
        self._reader = reader
        self._parts = parts

    def provide_prerequisite(self) -> AbstractAsyncContextManager[None]:
        return self._reader.prepare(self._parts)


class ImageReader:
    """Prepares the images of chats. It belongs to one event loop, but `prepared` is called from
    many threads.
    """

    def __init__(
        self,
        processor: ImageProcessor | None,
        loader: MediaLoader,
        max_model_len: int,
        video_processor: VideoProcessor | None = None,
        *,
        sounds: SoundReader | None = None,
    ) -> None:
        """A model that sees no pictures has no `processor`, and a model that hears nothing has no
        `sounds`.
        """
        cache = make_pixel_cache()
        self._processor = processor
        self._pictures: PictureReader | None = None
        self._documents: DocumentReader | None = None
        if processor is not None:
            self._pictures = PictureReader(processor, loader, cache)
            self._documents = DocumentReader(processor, DocumentLoader(loader), cache)
        self._videos: VideoReader | None = None
        if video_processor is not None:
            self._videos = VideoReader(video_processor, VideoLoader(loader), cache)
        self._sounds = sounds
        self.loader = loader
        self._max_model_len = max_model_len
        hearing = None if sounds is None else sounds.processor
        processors = [each for each in (processor, video_processor, hearing) if each is not None]
        # texts that the template writes for an image
        self.placeholders = frozenset(each.placeholder for each in processors)
        self.feature_tokens = frozenset(each.feature_token for each in processors)

    @property
    def placeholder(self) -> str:
        """Returns the text for one picture in the rendered chat."""
        assert self._processor is not None, "the model sees no pictures"
        return self._processor.placeholder

    @property
    def writes_pictures_as_lines(self) -> bool:
        """Tells whether pictures are lines of texts for the model's chat template."""
        processor = self._processor
        if processor is None or not isinstance(processor, WritesPicturesAsLines):
            return False
        return processor.writes_pictures_as_lines

    @property
    def has_pictures(self) -> bool:
        return self._pictures is not None

    @property
    def has_sounds(self) -> bool:
        return self._sounds is not None

    @property
    def has_videos(self) -> bool:
        return self._videos is not None

    @property
    def has_documents(self) -> bool:
        """Tells whether the model sees the pages of documents."""
        return self.has_pictures and can_read_documents()

    def close(self) -> None:
        self.loader.close()
        for reader in (self._documents, self._videos, self._sounds):
            if reader is not None:
                reader.close()

    def prepared(self, parts: Sequence[ContentPart]) -> list[Images]:
        """Returns the prepared images of each part, for the request in scope.

        Raises ImagesNeeded or PromptTooLong.
        """
        found, keys = _prepared.get(_Prepared()), [part.key for part in parts]
        if all(key in found.num_tokens for key in keys):
            num_tokens = sum(found.num_tokens[key] for key in keys)
            if num_tokens >= self._max_model_len:
                raise too_many_tokens(
                    num_tokens, max_model_len=self._max_model_len, field="messages"
                )
        if any(key not in found.images for key in keys):
            raise ImagesNeeded(self, parts)
        return [found.images[key] for key in keys]

    def numbered(self, images: list[PreparedImage]) -> list[PreparedImage]:
        """Returns all images of a chat, with the numbers of its pictures in their texts.

        Videos have no numbers.
        """
        processor, numbers = self._processor, count()
        if processor is None or not isinstance(processor, NumbersPictures):
            return images
        return [
            replace(each, text=processor.number_text(next(numbers)) + each.text)
            if each.placeholder == processor.placeholder
            else each
            for each in images
        ]

    @asynccontextmanager
    async def prepare(self, parts: Sequence[ContentPart]) -> AsyncGenerator[None, None]:
        """Prepares the images of `parts` for the code in the context. Images in scope stay there.

        Raises InvalidRequest or Overloaded.
        """
        loaded = await self._load(parts)
        first = self._first_that_fits(loaded)
        images = await self._prepare(loaded[first:])
        before = _prepared.get(_Prepared())
        made: dict[Hashable, Images] = dict(
            zip((part.key for part in parts[first:]), images, strict=True)
        )
        num_tokens: dict[Hashable, int] = {
            part.key: each.num_tokens for part, each in zip(parts, loaded, strict=True)
        }
        token = _prepared.set(
            _Prepared({**before.images, **made}, {**before.num_tokens, **num_tokens})
        )
        try:
            yield
        finally:
            _prepared.reset(token)

    async def _load(self, parts: Sequence[ContentPart]) -> list[_Loaded]:
        loaded: dict[type[ContentPart], Iterator[_Loaded]] = {}
        if self._pictures is not None and self._documents is not None:
            are_several = sum(isinstance(part, MediaPart | DocumentPart) for part in parts) > 1
            pictures = await self._pictures.load(
                [part for part in parts if isinstance(part, MediaPart)], are_several=are_several
            )
            documents = await self._documents.load(
                [part for part in parts if isinstance(part, DocumentPart)],
                num_pictures=len(pictures),
            )
            loaded |= {MediaPart: iter(pictures), DocumentPart: iter(documents)}
        if self._videos is not None:
            videos = await self._videos.load(
                [part for part in parts if isinstance(part, VideoPart)]
            )
            loaded[VideoPart] = iter(videos)
        if self._sounds is not None:
            sounds = await self._sounds.load(
                [part for part in parts if isinstance(part, SoundPart)]
            )
            loaded[SoundPart] = iter(sounds)
        return [next(loaded[type(part)]) for part in parts]

    async def _prepare(self, loaded: Sequence[_Loaded]) -> list[Images]:
        made: dict[type[_Loaded], Iterator[Images]] = {}
        if self._pictures is not None and self._documents is not None:
            pictures = await self._pictures.prepare(
                [each for each in loaded if isinstance(each, LoadedPicture)]
            )
            documents = await self._documents.prepare(
                [each for each in loaded if isinstance(each, LoadedDocument)]
            )
            made |= {LoadedPicture: ((each,) for each in pictures), LoadedDocument: iter(documents)}
        if self._videos is not None:
            videos = await self._videos.prepare(
                [each for each in loaded if isinstance(each, LoadedVideo)]
            )
            made[LoadedVideo] = ((each,) for each in videos)
        if self._sounds is not None:
            sounds = self._sounds.prepare(
                [each for each in loaded if isinstance(each, LoadedSound)]
            )
            made[LoadedSound] = ((each,) for each in sounds)
        return [next(made[type(each)]) for each in loaded]

    def _first_that_fits(self, loaded: Sequence[_Loaded]) -> int:
        """Returns the position of the first image that fits together with all images behind it."""
        num_tokens, first = 0, len(loaded)
        while first > 0 and num_tokens + loaded[first - 1].num_tokens < self._max_model_len:
            first -= 1
            num_tokens += loaded[first].num_tokens
        return first

    def make_inputs(
        self, images: Sequence[PreparedImage], places: NDArray[np.int64]
    ) -> tuple[MediaInput, ...]:
        """Returns the images and sounds for the engine.

        `places` are the positions of all feature tokens in the prompt, of one image after another.
        Raises Overloaded if the server holds too many media.
        """
        inputs = [each for image in images for each in image.inputs]
        ends = np.cumsum([each.num_tokens for each in inputs])
        assert len(places) == ends[-1], "only the template writes feature tokens"
        placed = list[MediaInput]()
        for each, own in zip(inputs, np.split(places, ends[:-1].tolist()), strict=True):
            made = each.place(_find_runs(own))
            self.loader.held_bytes.add(made, each.num_bytes)
            placed.append(made)
        return tuple(placed)


def _find_runs(places: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Returns the first place and the length of each run of consecutive places."""
    runs = np.split(places, (np.flatnonzero(np.diff(places) > 1) + 1).tolist())
    return tuple((int(run[0]), len(run)) for run in runs)
