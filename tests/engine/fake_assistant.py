"""Provides a fake model with an assistant that proposes the right tokens for right inputs."""

from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from tests.engine.fake_prediction import Hidden, Rows

Tokens = NDArray[np.int64]


class FakeAssistant(FakeRunner):
    """The assistant: it reads the model's cache, and checks each row of its batches.

    A hidden row tells the tokens for which the model, or the assistant itself, has computed it.
    They must begin with the tokens in the model's cache. For a random part of the rows the
    assistant proposes another token than the model.
    """

    hidden_rows: Rows = np.zeros((0, 0), np.float32)

    def __init__(self, model: "FakeAssisted", share: float, **options: Any) -> None:
        super().__init__(**options)
        self._model, self._share, self._random = model, share, Random(1)
        self.num_poor = 0  # rows whose hidden row belongs to other tokens than the cache has

    def run(self, batch: ForwardBatch) -> Rows:
        if batch.hidden_rows is None:
            return super().run(batch)
        self.batches.append(batch)
        assert np.array_equal(batch.sampled_rows, np.arange(len(batch.past_lens)))
        assert np.array_equal(batch.positions, batch.past_lens + 1)
        rows = np.stack([self._row(batch, number) for number in range(len(batch.past_lens))])
        self.hidden_rows = rows.copy()
        for row in rows:
            if self._random.random() >= self._share:
                row[:] = np.roll(row, 1)
        return rows

    def _row(self, batch: ForwardBatch, number: int) -> Rows:
        assert batch.hidden_rows is not None
        begins = batch.block_indices_begins[number : number + 2].tolist()
        past_len = int(batch.past_lens[number])
        cached = self._model.cached_tokens(batch.block_indices[slice(*begins)])[: past_len + 1]
        known = self._model.contexts[batch.hidden_rows[number].tobytes()]
        self.num_poor += not np.array_equal(known[: len(cached)], cached)
        return self._model.make_row(np.append(known, batch.token_ids[number]))


class FakeAssisted(Hidden):
    """The main model: it notes the tokens of each hidden row."""

    def __init__(self, share: float, **options: Any) -> None:
        super().__init__(**options)
        self.prediction = FakeAssistant(self, share, **options)
        self.contexts: dict[bytes, Tokens] = {}

    def make_row(self, context: Tokens) -> Rows:
        row = super()._logits(context)
        self.contexts[row.tobytes()] = context.copy()
        return row

    def cached_tokens(self, blocks: NDArray[np.int32]) -> Tokens:
        return self._slots[blocks].reshape(-1)

    def _logits(self, context: Tokens) -> Rows:
        return self.make_row(context)
