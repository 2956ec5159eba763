"""The vision encoder's work is done between steps, and what it gives is kept for the next prompt with the picture.

Rules
1. A chunk with tokens of an image is computed only once the image's features are there.
2. While somebody decodes, a step has one part of the encoder's work at most (a few layers on a tile), so that streams
   wait no longer than that; else the encoder goes on until something can be computed.
3. Sequences are served in `Sequence.order`. Images whose tokens the prefix cache has are not encoded.
4. Features are kept, least recently used first to go, up to `max_bytes`. Those that an open sequence still needs stay:
   where they fill it, only the first sequence gets more.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ImageRunner
from ouzel.engine.state.sequence import Sequence, SequenceStatus
from ouzel.types.engine_request import ImageInput

MAX_BYTES = 256 * 2**20  # of features that are kept: 100 images of 576 rows of 1024 numbers

Key = tuple[
    str, bytes
]  # the request's cache salt, and the digest: as in the prefix cache, only the same salt finds it
Features = NDArray[np.float32]  # [1 + what enters further layers, rows, hidden size]


class EncodingFailed(Exception):
    """Has the digest of the image that could not be encoded."""

    def __init__(self, digest: bytes, error: BaseException) -> None:
        super().__init__(str(error))
        self.digest = digest


class ImageEncoder:
    """Runs the model's vision encoder."""

    def __init__(
        self,
        runner: ImageRunner,
        num_cached: Callable[[Sequence], int],
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`num_cached` counts the tokens that the prefix cache has of a waiting sequence."""
        self._runner = runner
        self._max_bytes = max_bytes
        self._num_cached = num_cached
        self._features: OrderedDict[Key, Features] = OrderedDict()  # least recently used first
        self._num_bytes = 0
        self._work: tuple[Key, Generator[None, None, Features]] | None = None
        self.num_encoded = 0
        self.num_hits = 0
        self.encoding_s = 0.0

    def count_hits(self, sequence: Sequence) -> None:
        """Counts the images of a new sequence that need not be encoded."""
        if sequence.images is not None:
            missing = {
                _key(sequence, image) for image in self._needed(sequence)
            } - self._features.keys()
            self.num_hits += sum(
                _key(sequence, image) not in missing for image in sequence.images.images
            )

    def features(self, sequence: Sequence, image: ImageInput) -> Features:
        """Returns those of an image within `limit`."""
        self._features.move_to_end(_key(sequence, image))
        return self._features[_key(sequence, image)]

    def limit(self, sequence: Sequence) -> int:
        """Returns how many of its next tokens have all features that they need."""
        begin, images = sequence.num_computed_tokens, sequence.images
        if images is None or sequence.is_past_prompt:
            return sequence.num_uncomputed_tokens
        is_missing = [_key(sequence, image) not in self._features for image in images.images]
        missing = images.first_missing(begin, is_missing)
        return sequence.num_uncomputed_tokens if missing is None else missing - begin

    def advance(self, sequences: Iterable[Sequence], *, someone_decodes: bool) -> bool:
        """Works for one of the sequences, which are in order; returns whether there was something to do.

        Raises EncodingFailed.
        """
        if self._work is None and not self._begin(
            [each for each in sequences if self._needed(each)]
        ):
            return False
        assert self._work is not None
        key, parts = self._work
        started = time.monotonic()
        try:
            while True:
                next(parts)
                if someone_decodes:
                    return True
        except StopIteration as done:
            self._keep(key, done.value)
        except Exception as error:
            self._work = None
            raise EncodingFailed(key[1], error) from error
        finally:
            self.encoding_s += time.monotonic() - started
        return True

    def _keep(self, key: Key, features: Features) -> None:
        self._work = None
        self._features[key] = features
        self._num_bytes += features.nbytes
        self.num_encoded += 1

    def _begin(self, sequences: list[Sequence]) -> bool:
        needed = [(each, image) for each in sequences for image in self._needed(each)]
        missing = next((each for each in needed if _key(*each) not in self._features), None)
        if missing is None:
            return False
        sequence, image = missing
        has_room = self._make_room({_key(*each) for each in needed})
        if not has_room and sequence is not sequences[0]:
            return False
        self._work = _key(sequence, image), self._encode(image)
        return True

    def _encode(self, image: ImageInput) -> Generator[None, None, Features]:
        return (yield from self._runner.encode(image))

    def _needed(self, sequence: Sequence) -> list[ImageInput]:
        if sequence.images is None or sequence.is_past_prompt:
            return []
        is_waiting = sequence.status is SequenceStatus.WAITING
        num_there = self._num_cached(sequence) if is_waiting else sequence.num_computed_tokens
        return [
            image
            for image, end in zip(sequence.images.images, sequence.images.ends, strict=True)
            if end > num_there
        ]

    def _make_room(self, needed: set[Key]) -> bool:
        """Gives up features that nobody needs; returns False where those that are needed fill it."""
        for key in [each for each in self._features if each not in needed]:
            if self._num_bytes <= self._max_bytes:
                break
            self._num_bytes -= self._features.pop(key).nbytes
        return self._num_bytes <= self._max_bytes


def _key(sequence: Sequence, image: ImageInput) -> Key:
    return sequence.request.cache_salt, image.digest
