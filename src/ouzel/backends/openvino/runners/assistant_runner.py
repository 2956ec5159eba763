"""Runs an assistant on the KV cache of the model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.cache.kv_cache import KvCache
from ouzel.backends.openvino.language_model import PredictionGraphs
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.graph_request import GraphRequest
from ouzel.backends.openvino.runners.step_inputs import paging_inputs, rope_inputs
from ouzel.engine.base import ForwardBatch
from ouzel.types.engine_info import EngineInfo


@dataclass(frozen=True)
class CompiledAssistant:
    layers: ov.CompiledModel
    model_head: ov.CompiledModel  # makes the logits of the model
    embedding: ov.CompiledModel


class AssistantRunner:
    """Runs the assistant, and the head of the model; implements `HiddenRunner`.

    A batch without hidden rows gets zeros for them. No batch changes the cache.
    """

    def __init__(
        self,
        compiled: CompiledAssistant,
        cache: KvCache,
        graphs: PredictionGraphs,
        info: EngineInfo,
    ) -> None:
        self.info = info
        self.has_head_of_model = True  # `logits` makes the model's logits
        self.hidden_rows = np.zeros((0, graphs.hidden_size), np.float32)
        self._ropes = graphs.ropes
        self._kv_cache = cache
        self._model_head = GraphRequest(compiled.model_head)
        self._layers = GraphRequest(compiled.layers, cache.tensors)
        self._embedding = GraphRequest(compiled.embedding)

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        self._embedding.run({"input_ids": batch.token_ids})
        embedded = self._embedding.output()
        hidden = np.zeros_like(embedded) if batch.hidden_rows is None else batch.hidden_rows
        inputs = paging_inputs(batch) | rope_inputs(self._ropes, batch)
        self._layers.run(inputs | {"embedded_rows": embedded, "hidden_rows": hidden})
        if not batch.sampled_rows.size:
            self.hidden_rows = self.hidden_rows[:0]
            return np.zeros((0, self.info.vocab_size), np.float32)
        self.hidden_rows = self._layers.output(1)
        return self._layers.output(0)

    def logits(self, hidden_rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the model's logits, [S, vocab_size], of its hidden rows, [S, hidden_size].

        The result is a view that is valid until the next run.
        """
        self._model_head.run({"hidden_rows": hidden_rows})
        return self._model_head.output()

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Copies blocks of the model's KV cache, which both runners share."""
        self._kv_cache.copy_blocks(sources, destinations)

    def close(self) -> None:
        """Frees nothing: the model's runner owns the memory."""
