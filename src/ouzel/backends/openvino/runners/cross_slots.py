"""Holds the keys and values of windows of sound, in a slot of successive cache blocks each."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.cross_attention import CROSS_PREFIXES
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.memory import memory_error
from ouzel.backends.openvino.runners.tables import Table, allocate, find_tables
from ouzel.errors import ModelLoadError

Inputs = dict[str, NDArray[np.generic]]

MEMORY_SHARE = 0.25  # share of the free memory that slots take at most
# More windows at a time do not make steps of the decoder cheaper: the encoder takes most of the
# time, one window after the other.
MOST_SLOTS = 16


def find_cross_tables(compiled: ov.CompiledModel | ov.Model) -> list[Table]:
    return find_tables(compiled, *CROSS_PREFIXES)


def plan_slots(tables: list[Table], num_frames: int, max_num_seqs: int, free_bytes: int) -> int:
    """Returns the number of slots: one for each running sequence and one to fill meanwhile, up to
    MOST_SLOTS and as far as the memory holds them.

    Raises ModelLoadError if the memory does not hold one slot.
    """
    slot_bytes = count_slot_bytes(tables, num_frames)
    num_slots = min(max_num_seqs + 1, MOST_SLOTS, int(free_bytes * MEMORY_SHARE) // slot_bytes)
    if num_slots < 1:
        raise ModelLoadError(
            f"the keys and values of a window of sound need {slot_bytes / 2**20:.0f} MiB, the "
            "memory left is less"
        )
    return num_slots


class CrossSlots:
    def __init__(self, tables: list[Table], num_frames: int, num_slots: int) -> None:
        """Allocates the slots. Raises ModelLoadError if the system refuses the memory."""
        self.num_slots = num_slots
        self._num_frames = num_frames
        self._num_blocks = _count_blocks(tables, num_frames)
        num_blocks = num_slots * self._num_blocks
        try:
            self.tensors = allocate(tables, num_blocks)
        except RuntimeError as error:
            num_bytes = num_blocks * sum(table.row_bytes for table in tables)
            raise memory_error("max_num_seqs", num_bytes) from error
        # The checks of a model attend to slot 0 before it has a sound.
        for tensor in self.tensors.values():
            tensor.data[: self._num_blocks] = 0

    def reading_inputs(self, slots: NDArray[np.int32]) -> Inputs:
        """Makes the inputs of a step whose rows attend to all frames of these slots, [T].

        Each row is a sequence of one token, which finds the other frames in the cache.
        """
        num_rows = len(slots)
        blocks = slots[:, None] * self._num_blocks + np.arange(self._num_blocks, dtype=np.int32)
        return self._paging(
            past_lens=np.full(num_rows, self._num_frames - 1, np.int32),
            begins=np.arange(num_rows + 1, dtype=np.int32),
            blocks=blocks.reshape(-1).astype(np.int32),
        )

    def writing_inputs(self, slot: int) -> Inputs:
        """Makes the inputs that write all frames into the slot."""
        return self._paging(
            past_lens=np.zeros(1, np.int32),
            begins=np.array([0, self._num_frames], np.int32),
            blocks=np.arange(self._num_blocks, dtype=np.int32) + slot * self._num_blocks,
        )

    def _paging(
        self,
        past_lens: NDArray[np.int32],
        begins: NDArray[np.int32],
        blocks: NDArray[np.int32],
    ) -> Inputs:
        num_sequences = len(past_lens)
        return {
            "cross_past_lens": past_lens,
            "cross_subsequence_begins": begins,
            "cross_block_indices": blocks,
            "cross_block_indices_begins": np.arange(num_sequences + 1, dtype=np.int32)
            * np.int32(self._num_blocks),
            "cross_max_context_len": np.array(self._num_frames, np.int32),
        }


def count_slot_bytes(tables: list[Table], num_frames: int) -> int:
    return _count_blocks(tables, num_frames) * sum(table.row_bytes for table in tables)


def _count_blocks(tables: Iterable[Table], num_frames: int) -> int:
    block_size = next(table.row_shape[1] for table in tables)
    return -(-num_frames // block_size)
