"""Defines a runner whose logits depend on the sound in the slot of each row."""

import zlib
from collections.abc import Generator
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.types.engine_info import AudioShape
from ouzel.types.engine_request import AudioInput

NUM_FRAMES = 4


class FakeSpeechRunner(FakeRunner):
    def __init__(
        self,
        *,
        num_parts: int = 2,
        num_slots: int = 4,
        max_num_seqs: int = 8,
        max_num_batched_tokens: int = 16,
        num_blocks: int = 64,
    ) -> None:
        super().__init__(
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            num_blocks=num_blocks,
        )
        shape = AudioShape(
            num_mel_bins=2,
            num_frames=NUM_FRAMES,
            num_encoder_frames=NUM_FRAMES // 2,
            num_slots=num_slots,
            can_align=True,
        )
        self.info = msgspec.structs.replace(self.info, audio=shape, task="transcribe")
        self._num_parts = num_parts
        self.sounds = dict[int, int]()  # a digest of the sound in each slot
        self.encoded: list[bytes] = []
        self.num_parts_run = 0
        self.queries = np.zeros((0, 2), np.float32)  # the last batch has made them

    def encode_audio(self, audio: AudioInput, slot: int) -> Generator[None]:
        self.sounds.pop(slot, None)
        for number in range(self._num_parts):
            if number:
                yield
            self.num_parts_run += 1
        self.sounds[slot] = zlib.crc32(audio.features)
        self.encoded.append(audio.digest)

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        assert batch.audio_slots is not None
        assert len(batch.audio_slots) == len(batch.token_ids)
        sounds = np.array([self.sounds[slot] for slot in batch.audio_slots.tolist()], np.int64)
        self.queries = np.stack([batch.token_ids, batch.positions], axis=1).astype(np.float32)
        return super().run(replace(batch, token_ids=batch.token_ids + 1000 * sounds))

    def read_cross_queries(self) -> NDArray[np.float32]:
        return self.queries

    def align(
        self, queries: NDArray[np.float32], slot: int, num_frames: int
    ) -> NDArray[np.float32]:
        """Returns the token, its position, and the sound of the slot as long as frames are left."""
        columns = np.column_stack([queries, np.full(len(queries), self.sounds[slot] % 1000)])
        return columns[:, :num_frames].astype(np.float32)
