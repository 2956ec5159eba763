"""`FakeRunner` is a device that computes nothing but keeps an honest KV cache.

Its logits depend on every token of the context, as read back through the block table, on positions
and on the features of images. So a wrong block table, a wrongly shared block or a forgotten copy
changes the output.
"""

import zlib
from collections.abc import Generator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import CacheRows, ForwardBatch
from ouzel.engine.cache.state_slots import num_slots
from ouzel.errors import ModelLoadError
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import ImageInput, MediaInput


class FakeRunner:
    """Implements `ModelRunner` with pseudo-random logits of the whole context."""

    def __init__(
        self,
        *,
        num_blocks: int = 64,
        block_size: int = 4,
        vocab_size: int = 97,
        max_model_len: int = 128,
        max_num_seqs: int = 8,
        max_num_batched_tokens: int = 16,
        num_kept_states: int | None = None,
        num_encoder_parts: int = 0,
        has_hearing: bool = False,
        attends_to_whole_images: bool = False,
        attends_to_whole_prompts: bool = False,
        cache_identity: str = "fake",
        max_loras: int = 0,
    ) -> None:
        """With `num_encoder_parts` it encodes images, each in so many parts, and with `has_hearing`
        also sounds.

        With `max_loras` it takes adapters, which are files: their content changes the cache content
        of each token.
        """
        self._adapters: dict[int, int] = {}  # amount that the adapter of a slot adds to token ids
        self._num_encoder_parts = num_encoder_parts
        self.encoded: list[bytes] = []  # digests of the images whose encoding was finished
        num_state_slots = 0 if num_kept_states is None else num_slots(max_num_seqs, num_kept_states)
        # tokens that each state has seen
        self._states = [np.zeros(0, dtype=np.int64) for _ in range(num_state_slots)]
        # the "KV cache": the token in each place
        self._slots = np.full((num_blocks, block_size), -1, dtype=np.int64)
        # for each place the digest of the two-way tokens that its token saw, 0 for a causal token
        self._seen = np.zeros((num_blocks, block_size), dtype=np.int64)
        self.batches: list[ForwardBatch] = []  # all batches that were run
        self.info = EngineInfo(
            backend="fake",
            model_type="fake",
            device="none",
            weights="none",
            precision="f32",
            kv_cache_dtype="none",
            vocab_size=vocab_size,
            max_model_len=min(max_model_len, num_blocks * block_size),
            block_size=block_size,
            num_blocks=num_blocks,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            num_state_slots=num_state_slots,
            has_vision=num_encoder_parts > 0,
            has_hearing=has_hearing,
            attends_to_whole_images=attends_to_whole_images,
            attends_to_whole_prompts=attends_to_whole_prompts,
            cache_identity=cache_identity,
            max_loras=max_loras,
            max_lora_rank=1 if max_loras else 0,
            load_s=0.0,
        )

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        self.batches.append(batch)
        token_ids = _contents(batch)
        if batch.adapter_slots is not None:
            token_ids += [self._adapters.get(slot, 0) for slot in batch.adapter_slots.tolist()]
        contexts: list[NDArray[np.int64]] = []
        for i, past_len in enumerate(batch.past_lens.tolist()):
            begin, end = batch.subsequence_begins[i : i + 2].tolist()
            blocks = batch.block_indices[slice(*batch.block_indices_begins[i : i + 2].tolist())]
            context_len = past_len + end - begin
            places = np.arange(past_len, context_len)
            self._slots[blocks[places // self.info.block_size], places % self.info.block_size] = (
                token_ids[begin:end]
            )
            context = self._slots[blocks].reshape(-1)
            self._seen[blocks[places // self.info.block_size], places % self.info.block_size] = (
                _seen_by(batch, begin, end, context[:context_len])
            )
            if batch.state_slots is not None:
                self._advance_state(batch.state_slots, i, context[:context_len], past_len)
            seen = self._seen[blocks].reshape(-1)
            contexts += [
                np.concatenate([context[:num], *([seen[:num]] if seen[:num].any() else [])])
                for num in range(past_len + 1, context_len + 1)
            ]
        rows = [self._logits(contexts[row]) for row in batch.sampled_rows.tolist()]
        return np.stack(rows) if rows else np.zeros((0, self.info.vocab_size), dtype=np.float32)

    def _advance_state(
        self, slots: NDArray[np.int32], i: int, context: NDArray[np.int64], past_len: int
    ) -> None:
        """Advances a state. Raises ValueError if its slots are wrong or another sequence's."""
        read, written = slots[i].tolist()
        others = np.delete(slots, i, axis=0)
        if not np.array_equal(self._states[read], context[:past_len]):
            raise ValueError(
                f"slot {read} has seen {len(self._states[read])} tokens, expected {past_len}"
            )
        if written == 0 or written in others:
            raise ValueError(f"slot {written} is written, but belongs to another sequence")
        self._states[written] = context.copy()

    def encode(self, image: MediaInput) -> Generator[None, None, NDArray[np.float32]]:
        """Computes one number for each row, which depends on every byte of the image."""
        for _ in range(self._num_encoder_parts - 1):
            yield
        self.encoded.append(image.digest)
        num_rows = sum(length for _, length in image.runs)
        generator = np.random.Generator(
            np.random.Philox(
                zlib.crc32(image.pixels if isinstance(image, ImageInput) else image.features)
            )
        )
        return generator.integers(1, 2**20, (1, num_rows, 1)).astype(np.float32)

    def fill_adapter_slot(self, slot: int, path: str) -> bytes:
        """Reads the adapter. Raises ModelLoadError if there is no such file."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ModelLoadError(f"{path}: {error.strerror}") from error
        self._adapters[slot] = 1000 * zlib.crc32(content)
        return zlib.crc32(content).to_bytes(4, "big")

    def clear_adapter_slot(self, slot: int) -> None:
        self._adapters.pop(slot, None)

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._slots[destinations] = self._slots[sources]
        self._seen[destinations] = self._seen[sources]

    @property
    def cache_rows(self) -> Mapping[str, CacheRows]:
        rows: dict[str, CacheRows] = {"block": FakeBlocks(self._slots)}
        if self._states:
            rows["state"] = FakeStates(self._states, self.info.max_model_len)
        return rows

    def close(self) -> None:
        pass

    def _logits(self, context: NDArray[np.int64]) -> NDArray[np.float32]:
        generator = np.random.Generator(np.random.Philox(zlib.crc32(context.tobytes())))
        return generator.normal(scale=3.0, size=self.info.vocab_size).astype(np.float32)


class FakeBlocks:
    """Implements `CacheRows` for blocks."""

    def __init__(self, slots: NDArray[np.int64]) -> None:
        self._rows = slots.view(np.uint8)
        self.row_bytes = self._rows.shape[1]

    def read(self, row: int, record: NDArray[np.uint8]) -> None:
        record[:] = self._rows[row]

    def write(self, row: int, record: NDArray[np.uint8]) -> None:
        self._rows[row] = record


class FakeStates:
    """Implements `CacheRows` for states: a row has the number of tokens, then the tokens."""

    def __init__(self, states: list[NDArray[np.int64]], max_len: int) -> None:
        self._states = states
        self.row_bytes = 8 * (1 + max_len)

    def read(self, row: int, record: NDArray[np.uint8]) -> None:
        state = self._states[row]
        numbers = record.view(np.int64)
        numbers[:] = 0
        numbers[0], numbers[1 : 1 + len(state)] = len(state), state

    def write(self, row: int, record: NDArray[np.uint8]) -> None:
        numbers = np.frombuffer(record.tobytes(), np.int64)
        self._states[row] = numbers[1 : 1 + numbers[0]]


def _seen_by(
    batch: ForwardBatch, begin: int, end: int, context: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Returns for each new token [begin, end) a digest of its span, 0 for a causal token."""
    seen = np.zeros(end - begin, np.int64)
    if batch.two_way_begins is None:
        return seen
    begins = batch.two_way_begins[begin:end]
    for first in set(begins[begins >= 0].tolist()):
        rows = np.flatnonzero(begins == first)
        span_end = len(context) - len(begins) + int(rows[-1]) + 1
        seen[rows] = 1 + zlib.crc32(context[first:span_end].tobytes())
    return seen


def _contents(batch: ForwardBatch) -> NDArray[np.int64]:
    """Returns the tokens, changed by images and by grids of positions."""
    token_ids = batch.token_ids.copy()
    if batch.image_rows is not None and batch.image_features is not None:
        token_ids[batch.image_rows] = -batch.image_features[0, :, 0].astype(np.int64)
    if batch.positions.ndim > 1:
        new_lens = np.diff(batch.subsequence_begins)
        begins = np.repeat(batch.past_lens - batch.subsequence_begins[:-1], new_lens)
        usual = begins + np.arange(len(token_ids))
        token_ids += np.array([1009, 10007, 100003]) @ (batch.positions - usual)
    return token_ids
