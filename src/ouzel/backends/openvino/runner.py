"""Runs batches on a compiled model: one `infer` a step, inputs set by name, nothing copied."""

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ouzel.backends.openvino.kv_cache import KvCache
from ouzel.backends.openvino.rope import Rope
from ouzel.engine.base import ForwardBatch
from ouzel.types import EngineInfo


class OpenVINORunner:
    """A ModelRunner. `keep_alive` is what the compiled model points into."""

    def __init__(
        self, compiled: ov.CompiledModel, kv_cache: KvCache, rope: Rope | None, info: EngineInfo, keep_alive: object
    ) -> None:
        self._info = info
        self._rope = rope
        self._kv_cache = kv_cache
        self._compiled = compiled
        self._keep_alive = keep_alive
        self._request = compiled.create_infer_request()
        self._arrays: list[NDArray[np.generic]] = []  # the request's inputs, which it only points to
        for name, tensor in kv_cache.tensors.items():
            self._request.set_tensor(name, tensor)

    @property
    def info(self) -> EngineInfo:
        return self._info

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        arrays = self._inputs(batch)
        for name, array in arrays.items():
            self._request.set_tensor(name, ov.Tensor(array, shared_memory=True))
        self._arrays = list(arrays.values())
        self._request.infer()  # without the GIL
        logits: NDArray[np.float32] = self._request.get_output_tensor(0).data
        return logits

    def _inputs(self, batch: ForwardBatch) -> dict[str, NDArray[np.generic]]:
        inputs: dict[str, NDArray[np.generic]] = {
            "input_ids": batch.token_ids,
            "past_lens": batch.past_lens,
            "subsequence_begins": batch.subsequence_begins,
            "block_indices": batch.block_indices,
            "block_indices_begins": batch.block_indices_begins,
            "max_context_len": np.array(batch.max_context_len, np.int32),
            "sampled_rows": batch.sampled_rows,
        }
        if self._rope is None:
            inputs["position_ids"] = batch.positions
        else:
            inputs["rope_cos"], inputs["rope_sin"] = self._rope.cos_sin(batch.positions)
        return inputs

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._kv_cache.copy_blocks(sources, destinations)

    def close(self) -> None:
        """Gives the memory back; the runner is of no use afterwards."""
        del self._request, self._compiled, self._kv_cache, self._keep_alive
