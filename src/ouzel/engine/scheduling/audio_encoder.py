"""Encodes windows of sound between steps, each into a slot that its sequences attend to.

Rules
1. A prompt is computed only after its sound is in a slot.
2. While a sequence decodes, at most one part of the encoder's work (a few layers) runs between two
   steps, which bounds the wait of the streams. Otherwise the encoder works until a prompt can be
   computed.
3. Sequences are served in `Sequence.order`. Sequences with the same sound share a slot.
4. A slot keeps its sound until another sound needs the slot: the least recently used one that no
   open sequence needs, else the sound of the last sequence that still waits.
"""

import time
from collections import OrderedDict
from collections.abc import Generator, Iterable

from ouzel.engine.base import AudioRunner
from ouzel.engine.scheduling.image_encoder import EncodingFailed, NoImages
from ouzel.engine.state.sequence import Sequence, SequenceStatus
from ouzel.types.engine_request import AudioInput

# The request's cache salt and the digest. As in the prefix cache, salts do not share sounds.
Key = tuple[str, bytes]


class AudioEncoder(NoImages):
    """Runs the model's audio encoder and hands out the slots of the results."""

    def __init__(self, runner: AudioRunner, num_slots: int) -> None:
        self._runner = runner
        self._free = list(reversed(range(num_slots)))
        self._slots: OrderedDict[Key, int] = OrderedDict()  # least recently used first
        self._work: tuple[Key, int, Generator[None]] | None = None
        self.num_encoded = 0
        self.num_hits = 0
        self.encoding_s = 0.0

    def count_hits(self, sequence: Sequence) -> None:
        """Counts a new sequence whose sound is in a slot already."""
        key = _find_key(sequence)
        self.num_hits += key is not None and key in self._slots

    def limit(self, sequence: Sequence) -> int:
        """Returns how many of the next tokens can be computed: none before the sound is in its
        slot.
        """
        key = _find_key(sequence)
        is_ready = key is None or key in self._slots
        return sequence.num_uncomputed_tokens if is_ready else 0

    def slot(self, sequence: Sequence) -> int:
        """Returns the slot of a sequence that is computed now."""
        key = _find_key(sequence)
        assert key is not None, "sequences without sound are refused"
        self._slots.move_to_end(key)
        return self._slots[key]

    def advance(self, sequences: Iterable[Sequence], *, someone_decodes: bool) -> bool:
        """Continues the encoding for the first sequence that needs it; returns whether there was
        any work.

        `sequences` are in order. Raises EncodingFailed.
        """
        if self._work is None and not self._begin(list(sequences)):
            return False
        assert self._work is not None
        key, slot, parts = self._work
        started = time.monotonic()
        try:
            for _ in parts:
                if someone_decodes:
                    return True
            self._work = None
            self._slots[key] = slot
            self.num_encoded += 1
        except Exception as error:
            self._work = None
            self._free.append(slot)
            raise EncodingFailed(key[1], error) from error
        finally:
            self.encoding_s += time.monotonic() - started
        return True

    def _begin(self, sequences: list[Sequence]) -> bool:
        found = next((each for each in sequences if not self.limit(each)), None)
        if found is None or found.num_uncomputed_tokens == 0:
            return False
        slot = self._take_slot(found, sequences)
        if slot is None:
            return False
        key, audio = _find_key(found), found.request.audio
        assert key is not None
        assert audio is not None
        self._work = key, slot, self._encode(audio, slot)
        return True

    def _encode(self, audio: AudioInput, slot: int) -> Generator[None]:
        yield from self._runner.encode_audio(audio, slot)

    def _take_slot(self, sequence: Sequence, sequences: list[Sequence]) -> int | None:
        if self._free:
            return self._free.pop()
        needed = {_find_key(each) for each in sequences}
        unneeded = next((key for key in self._slots if key not in needed), None)
        if unneeded is not None:
            return self._slots.pop(unneeded)
        running = {
            _find_key(each) for each in sequences if each.status is not SequenceStatus.WAITING
        }
        for each in reversed(sequences):
            key = _find_key(each)
            if each is sequence:
                return None
            if key is not None and key in self._slots and key not in running:
                return self._slots.pop(key)
        return None


def _find_key(sequence: Sequence) -> Key | None:
    audio = sequence.request.audio
    return None if audio is None else (sequence.request.cache_salt, audio.digest)
