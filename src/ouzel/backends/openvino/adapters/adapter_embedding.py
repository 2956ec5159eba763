"""Computes the embeddings of a step's tokens that their adapters change, on the host."""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.adapters.matrix_changes import EmbeddingChange
from ouzel.backends.openvino.graph.adapter_shape import EMBEDDING_FACTOR, EMBEDDING_SHIFT
from ouzel.engine.base import ForwardBatch

Floats = NDArray[np.float32]


class EmbeddingSlots:
    """The changes of the embedding by slot."""

    def __init__(self, num_columns: int) -> None:
        self._num_columns = num_columns
        self._changes: dict[int, EmbeddingChange] = {}
        # Requests may share their memory for as long as they run, so nothing writes to them.
        self._no_changes: dict[str, NDArray[np.generic]] = {
            EMBEDDING_FACTOR: np.ones((1, 1), np.float32),
            EMBEDDING_SHIFT: np.zeros((1, num_columns), np.float32),
        }

    def fill(self, slot: int, change: EmbeddingChange) -> None:
        self._changes[slot] = change

    def clear(self, slot: int) -> None:
        self._changes.pop(slot, None)

    def inputs(self, batch: ForwardBatch) -> dict[str, NDArray[np.generic]]:
        """Returns the factor and the shift of each row; one row for all if nothing is changed."""
        slots = batch.adapter_slots
        changes = dict(self._changes)  # a thread may fill another slot meanwhile
        used = [] if slots is None else [slot for slot in np.unique(slots) if slot in changes]
        if slots is None or not used:
            return self._no_changes
        factors = np.ones((len(slots), self._num_columns), np.float32)
        shifts = np.zeros((len(slots), self._num_columns), np.float32)
        for slot in used:
            rows = np.flatnonzero(slots == slot)
            _change(changes[slot], batch.token_ids[rows], rows, factors, shifts)
        return {EMBEDDING_FACTOR: factors, EMBEDDING_SHIFT: shifts}


def _change(
    change: EmbeddingChange,
    tokens: NDArray[np.int64],
    rows: NDArray[np.int64],
    factors: Floats,
    shifts: Floats,
) -> None:
    """Writes the factors and shifts of the rows of one adapter."""
    factors[rows] = change.factor
    # Placeholders of images may be no tokens; the features of the images take their places.
    known = (tokens >= 0) & (tokens < len(change.a))
    shifts[rows[known]] = change.a[tokens[known]] @ change.b
    if len(change.tokens):
        places = np.searchsorted(change.tokens, tokens).clip(0, len(change.tokens) - 1)
        is_replaced = change.tokens[places] == tokens
        factors[rows[is_replaced]] = 0
        shifts[rows[is_replaced]] = change.token_rows[places[is_replaced]]
