"""Encodes images between steps and keeps their features for later prompts with the same image.

A sound whose features stand for tokens of a prompt is encoded in the same way, and counts as an
image here.

Rules
1. A chunk with tokens of an image is computed only after the features of the image.
2. While a sequence decodes, at most one part of the encoder's work (a few layers on a tile) runs
   between two steps, which bounds the wait of the streams. Otherwise the encoder works until a
   prompt can be computed.
3. Sequences are served in `Sequence.order`. Images whose tokens are in the prefix cache are not
   encoded.
4. Features are kept up to `max_bytes`; the least recently used are dropped first. Features that an
   open sequence needs stay: if they fill the memory, only the first sequence gets more.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ImageRunner
from ouzel.engine.state.sequence import Sequence, SequenceStatus
from ouzel.types.engine_request import MediaInput

MAX_BYTES = 256 * 2**20  # kept features: 100 images of 576 rows of 1024 numbers

# The request's cache salt and the digest. As in the prefix cache, salts do not share features.
Key = tuple[str, bytes]
Features = NDArray[np.float32]  # [1 + number of further layers, rows, hidden size]


class EncodingFailed(Exception):
    """Raised when the encoder failed on the image with this digest."""

    def __init__(self, digest: bytes, error: BaseException) -> None:
        super().__init__(str(error))
        self.digest = digest


class ImageEncoder:
    """Runs the encoder of the model's images or sounds and caches its results."""

    def __init__(
        self,
        runner: ImageRunner,
        num_cached: Callable[[Sequence], int],
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`num_cached` counts the tokens of a waiting sequence that the prefix cache holds."""
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
        """Counts the images of a new sequence that need no encoding."""
        if sequence.images is not None:
            missing = {
                _key(sequence, image) for image in self._needed(sequence)
            } - self._features.keys()
            self.num_hits += sum(
                _key(sequence, image) not in missing for image in sequence.images.images
            )

    def features(self, sequence: Sequence, image: MediaInput) -> Features:
        """Returns the features of an image whose tokens are within `limit`."""
        self._features.move_to_end(_key(sequence, image))
        return self._features[_key(sequence, image)]

    def limit(self, sequence: Sequence) -> int:
        """Returns how many of the next tokens have all the features that they need."""
        begin, images = sequence.num_computed_tokens, sequence.images
        if images is None or sequence.is_past_prompt:
            return sequence.num_uncomputed_tokens
        is_missing = [_key(sequence, image) not in self._features for image in images.images]
        missing = images.first_missing(begin, is_missing)
        return sequence.num_uncomputed_tokens if missing is None else missing - begin

    def advance(self, sequences: Iterable[Sequence], *, someone_decodes: bool) -> bool:
        """Continues the encoding for the first sequence that needs it; returns whether there was
        any work.

        `sequences` are in order. Raises EncodingFailed.
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

    def _encode(self, image: MediaInput) -> Generator[None, None, Features]:
        return (yield from self._runner.encode(image))

    def _needed(self, sequence: Sequence) -> list[MediaInput]:
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
        """Drops features that no sequence needs.

        Returns False if the needed features exceed the memory.
        """
        for key in [each for each in self._features if each not in needed]:
            if self._num_bytes <= self._max_bytes:
                break
            self._num_bytes -= self._features.pop(key).nbytes
        return self._num_bytes <= self._max_bytes


def _key(sequence: Sequence, image: MediaInput) -> Key:
    return sequence.request.cache_salt, image.digest


class NoImages:
    """Replaces `ImageEncoder` for a model without vision, whose prompts have no images."""

    num_encoded = 0
    num_hits = 0
    encoding_s = 0.0

    def count_hits(self, sequence: Sequence) -> None:
        pass

    def features(self, sequence: Sequence, image: MediaInput) -> Features:
        raise AssertionError("a model without vision has no images")

    def limit(self, sequence: Sequence) -> int:
        return sequence.num_uncomputed_tokens

    def advance(self, sequences: Iterable[Sequence], *, someone_decodes: bool) -> bool:
        return False


NO_IMAGES = NoImages()
