"""Provides a fake model with a prediction layer that proposes the right tokens for right inputs."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch

Rows = NDArray[np.float32]


class Hidden(FakeRunner):
    """A fake runner that returns its logits as hidden rows."""

    hidden_rows: Rows = np.zeros((0, 0), np.float32)

    def run(self, batch: ForwardBatch) -> Rows:
        all_rows = replace(batch, sampled_rows=np.arange(len(batch.token_ids)))
        self.hidden_rows = super().run(all_rows)
        self.batches[-1] = batch
        return self.hidden_rows[batch.sampled_rows]


class FakePrediction(Hidden):
    """The prediction layer: it caches every token but the first, and checks each hidden row.

    A hidden row must be the main model's row for the token before. For a random part of the rows
    the layer proposes another token than the main model.
    """

    def __init__(self, share: float, **options: Any) -> None:
        super().__init__(**options)
        self._share = share
        self._random = Random(1)
        self.num_poor = 0  # entries whose hidden row did not belong to the token before

    def run(self, batch: ForwardBatch) -> Rows:
        rows = super().run(batch)
        # a grid of positions changes the cached content, which then no longer tells the row
        if batch.hidden_rows is not None and batch.positions.ndim == 1:
            before = np.array([self._before(batch, row) for row in range(len(batch.token_ids))])
            self.num_poor += int(np.any(before != batch.hidden_rows, axis=1).sum())
        self.hidden_rows = rows.copy()
        for row in rows:
            if self._random.random() >= self._share:
                row[:] = np.roll(row, 1)
        return rows

    def _before(self, batch: ForwardBatch, row: int) -> Rows:
        number = int(np.searchsorted(batch.subsequence_begins, row, "right")) - 1
        blocks = batch.block_indices[
            slice(*batch.block_indices_begins[number : number + 2].tolist())
        ]
        return self._logits(self._slots[blocks].reshape(-1)[: int(batch.positions[row])])


class FakePredictor(Hidden):
    """The main model.

    Its logits do not depend on the first token, which the prediction layer never reads.
    """

    def __init__(self, share: float, **options: Any) -> None:
        super().__init__(**options)
        self.prediction = FakePrediction(share, **options)

    def _logits(self, context: NDArray[np.int64]) -> Rows:
        return super()._logits(context[1:])

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        super().copy_blocks(sources, destinations)
        self.prediction.copy_blocks(sources, destinations)
