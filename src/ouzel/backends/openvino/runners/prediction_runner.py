"""Runs a prediction layer or an EAGLE-3 head, on the KV cache of the model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.cache.kv_cache import KvCache
from ouzel.backends.openvino.language_model import PredictionGraphs
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.graph_request import GraphRequest
from ouzel.backends.openvino.runners.image_rows import features_shape, image_inputs
from ouzel.backends.openvino.runners.step_inputs import paging_inputs, rope_inputs
from ouzel.engine.base import ForwardBatch
from ouzel.types.engine_info import EngineInfo

_HIDDEN_ROWS, _LOGITS = 0, 1  # outputs of a layer; the second exists without the model's head


@dataclass(frozen=True)
class CompiledPrediction:
    layer: ov.CompiledModel
    head: ov.CompiledModel | None = None  # the model's; None: model and layer have heads inside


class PredictionRunner:
    """Runs the prediction layer and the model's head, or an EAGLE-3 head; implements
    `HiddenRunner`.

    A batch without hidden rows gets zeros for them.
    """

    def __init__(
        self,
        compiled: CompiledPrediction,
        cache: KvCache,
        graphs: PredictionGraphs,
        info: EngineInfo,
    ) -> None:
        self.info = info
        self.hidden_rows = np.zeros((0, graphs.hidden_size), np.float32)
        self._ropes = graphs.ropes
        self._token_ids = graphs.token_ids
        self._kv_cache = cache
        self._features_shape = features_shape(compiled.layer)
        self._head = None if compiled.head is None else GraphRequest(compiled.head)
        self._layer = GraphRequest(compiled.layer, cache.tensors)

    @property
    def has_head_of_model(self) -> bool:
        """Tells whether `logits` makes the model's logits, too."""
        return self._head is not None

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        rows = batch.hidden_rows
        if rows is None:
            rows = np.zeros((len(batch.token_ids), self.hidden_rows.shape[1]), np.float32)
        inputs = paging_inputs(batch) | rope_inputs(self._ropes, batch) | {"hidden_rows": rows}
        if self._features_shape is not None:
            inputs |= image_inputs(batch, self._features_shape)
        self._layer.run(inputs)
        if not batch.sampled_rows.size:
            self.hidden_rows = self.hidden_rows[:0]
            return np.zeros((0, self.info.vocab_size), np.float32)
        self.hidden_rows = self._layer.output(_HIDDEN_ROWS)
        if self._head is not None:
            return self.logits(self.hidden_rows)
        return self._spread(self._layer.output(_LOGITS))

    def logits(self, hidden_rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the logits, [S, vocab_size], of hidden rows, [S, hidden_size].

        The result is a view that is valid until the next run.
        """
        assert self._head is not None, "the layer has a head of its own"
        self._head.run({"hidden_rows": hidden_rows})
        return self._head.output()

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Copies blocks of the model's KV cache, which both runners share."""
        self._kv_cache.copy_blocks(sources, destinations)

    def close(self) -> None:
        """Frees nothing: the model's runner owns the memory."""

    def _spread(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the logits [S, vocab_size]: minus infinity for tokens that the layer leaves
        out.
        """
        if self._token_ids is None:
            return logits
        spread = np.full((len(logits), self.info.vocab_size), -np.inf, np.float32)
        spread[:, self._token_ids] = logits
        return spread
