"""Loads the sounds of a chat, counts their tokens by their lengths, and computes their features."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from ouzel.audio.decoder import AudioDecoder
from ouzel.audio.errors import InvalidAudio
from ouzel.audio.sound import Sound
from ouzel.errors import InvalidRequest
from ouzel.prompts.hearing.base import SoundLayout, SoundProcessor
from ouzel.prompts.media.fetching.sources import read_source
from ouzel.prompts.media.loader import MediaLoader, run_concurrently
from ouzel.prompts.media.parts import SoundPart
from ouzel.prompts.media_readers.prepared_images import (
    PreparedImage,
    SizedCache,
    SoundEncoderInput,
)
from ouzel.worker_threads import WorkerThreads

_MAX_THREADS = 2


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _SoundFile:
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoadedSound:
    layout: SoundLayout
    encoder_input: SoundEncoderInput

    @property
    def num_tokens(self) -> int:
        return self.layout.num_tokens


class SoundReader:
    """Loads and prepares sounds. It belongs to one event loop, and owns the decoder."""

    def __init__(
        self, processor: SoundProcessor, loader: MediaLoader, decoder: AudioDecoder
    ) -> None:
        self.processor = processor
        self._loader = loader
        self._decoder = decoder
        self._threads = WorkerThreads("features of sounds", _MAX_THREADS)
        self._cache = SizedCache[LoadedSound](lambda loaded: len(loaded.encoder_input.features))

    def close(self) -> None:
        self._decoder.close()
        self._threads.close()

    async def load(self, parts: Sequence[SoundPart]) -> list[LoadedSound]:
        """Returns a sound for each part of a request, in order.

        Parts with the same text are loaded once. Raises InvalidRequest or Overloaded.
        """
        max_sounds = self._loader.config.max_sounds
        if len(parts) > max_sounds:
            raise InvalidRequest(
                f"must be one of <= {max_sounds} sounds in a request (max_sounds), "
                f"given {len(parts)}",
                field=parts[max_sounds].path,
            )
        distinct = {part.key: part for part in reversed(parts)}
        loaded = await run_concurrently([self._load(part) for part in distinct.values()])
        by_key = dict(zip(distinct, loaded, strict=True))
        return [by_key[part.key] for part in parts]

    async def _load(self, part: SoundPart) -> LoadedSound:
        source = await self._loader.intake.run(partial(read_source, part.url, part.path))
        file = await self._loader.intake.read(source, part.path, _SoundFile)
        self._loader.held_bytes.add(file, len(file.data))
        digest = blake2b(b"sound" + file.data, digest_size=16).digest()
        loaded = self._cache.get(digest)
        if loaded is None:
            try:
                sound = await self._decoder.decode(file.data)
            except InvalidAudio as error:
                raise error.at(part.path) from error
            with sound:
                layout = self._lay_out(sound, part)
                loaded = await self._threads.run(partial(self._prepare, sound, layout, digest))
        self._cache.add(digest, loaded)
        return loaded

    def _lay_out(self, sound: Sound, part: SoundPart) -> SoundLayout:
        try:
            return self.processor.layout(sound.num_samples)
        except ValueError as error:
            complaint = f"cannot be taken by this model: {error}"
            raise InvalidRequest(complaint, field=part.path) from error

    def _prepare(self, sound: Sound, layout: SoundLayout, digest: bytes) -> LoadedSound:
        features = self.processor.compute_features(sound)
        num_bins, num_frames = features.shape
        encoder_input = SoundEncoderInput(
            digest=digest,
            num_tokens=layout.num_tokens,
            shape=(num_bins, num_frames),
            features=features.tobytes(),
            num_frames=layout.num_frames,
        )
        return LoadedSound(layout, encoder_input)

    def prepare(self, loaded: Sequence[LoadedSound]) -> list[PreparedImage]:
        """Returns the sounds with their texts in the prompt."""
        placeholder = self.processor.placeholder
        return [
            PreparedImage(placeholder, each.layout.text, (each.encoder_input,)) for each in loaded
        ]
