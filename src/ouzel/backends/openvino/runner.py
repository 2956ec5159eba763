"""The runner runs batches on a compiled model: one `infer` a step, with inputs set by name, and nothing is copied."""

from collections.abc import Generator, Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.chunked_rows import chunk_inputs, in_chunks
from ouzel.backends.openvino.image_rows import features_shape, image_inputs, is_image_token
from ouzel.backends.openvino.kv_cache import KvCache
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.state_tables import NEXT_PREFIX, StateTables
from ouzel.backends.openvino.tables import TableRows
from ouzel.backends.openvino.vision_runner import VisionRunner
from ouzel.engine.base import CacheRows, ForwardBatch
from ouzel.types import EngineInfo, ImageInput


def position_axes(compiled: ov.CompiledModel) -> tuple[int, ...]:
    """Returns (3,) where the input `position_ids` is [3, T]: for time, height and width of an image's tokens."""
    shapes = (port.get_partial_shape() for port in compiled.inputs if port.get_any_name() == "position_ids")
    return tuple(axis.get_length() for shape in shapes for axis in list(shape)[:-1])


class OpenVINORunner:
    """Implements `ModelRunner`; it owns the compiled model, the arrays that this points into, and the caches."""

    def __init__(
        self,
        compiled: ov.CompiledModel,
        caches: tuple[KvCache, StateTables],
        language_model: LanguageModel,
        info: EngineInfo,
        vision: VisionRunner | None = None,
    ) -> None:
        self.info = info
        self._vision = vision
        self._features_shape = features_shape(compiled)
        self._compiled = compiled
        self._kv_cache, self._states = caches
        self._weights = language_model.arrays
        self._ropes = language_model.ropes
        self._query_scale = language_model.query_scale
        self._request = compiled.create_infer_request()
        self._arrays: list[NDArray[np.generic]] = []  # the request's inputs, which it only points to
        # Inputs are told apart by name, once: setting them by index is faster by a third of a millisecond a step.
        self._indices = {port.get_any_name(): index for index, port in enumerate(compiled.inputs)}
        self._position_axes = position_axes(compiled)
        self._next_states = {
            port.get_any_name().removeprefix(NEXT_PREFIX): index
            for index, port in enumerate(compiled.outputs)
            if port.get_any_name().startswith(NEXT_PREFIX)
        }
        for name, tensor in (self._kv_cache.tensors | self._states.tensors).items():
            self._request.set_tensor(name, tensor)

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        arrays = self._inputs(batch)
        for name, array in arrays.items():
            self._request.set_input_tensor(self._indices[name], ov.Tensor(array, shared_memory=True))
        self._arrays = list(arrays.values())
        self._request.infer(share_outputs=True, decode_strings=False)  # without the GIL
        self._keep_states(batch)
        if not batch.sampled_rows.size:  # openvino cannot show an empty tensor as an array
            return np.zeros((0, self.info.vocab_size), np.float32)
        logits: NDArray[np.float32] = self._request.get_output_tensor(0).data
        return logits.reshape(len(batch.sampled_rows), logits.shape[-1])

    def _inputs(self, batch: ForwardBatch) -> dict[str, NDArray[np.generic]]:
        inputs: dict[str, NDArray[np.generic]] = {
            "input_ids": batch.token_ids,
            "past_lens": batch.past_lens,
            "subsequence_begins": batch.subsequence_begins,
            "block_indices": batch.block_indices,
            "block_indices_begins": batch.block_indices_begins,
            "max_context_len": np.array(batch.max_context_len, np.int32),
            "sampled_rows": batch.sampled_rows,
            **self._states.inputs(batch.state_slots),
        }
        if self._next_states and batch.state_slots is not None:
            inputs |= chunk_inputs(batch.subsequence_begins, batch.state_slots[:, 0])
        if "position_ids" in self._indices:
            shape = (*self._position_axes, len(batch.token_ids))
            inputs["position_ids"] = np.array(np.broadcast_to(batch.positions, shape), order="C")
        for name, rope in self._ropes.items():
            inputs[f"rope_cos.{name}"], inputs[f"rope_sin.{name}"] = rope.cos_sin(batch.positions)
        if self._query_scale is not None:
            inputs["query_scale"] = self._query_scale.at(batch.positions)
        if self._features_shape is not None:
            inputs |= image_inputs(batch, self._features_shape)
        if "image_tokens" in self._indices:
            inputs["image_tokens"] = is_image_token(batch)
        return inputs

    def encode(self, image: ImageInput) -> Generator[None, None, NDArray[np.float32]]:
        assert self._vision is not None, "a model that does not see gets no images"
        return self._vision.encode(image)

    def _keep_states(self, batch: ForwardBatch) -> None:
        """Puts the states that sequences in chunks have at the end, which are outputs, into their slots."""
        if not self._next_states or batch.state_slots is None:
            return
        slots = batch.state_slots[in_chunks(batch.subsequence_begins), 1]
        for name, index in self._next_states.items() if len(slots) else ():
            self._states.write(name, slots, self._request.get_output_tensor(index).data)

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._kv_cache.copy_blocks(sources, destinations)

    @property
    def cache_rows(self) -> Mapping[str, CacheRows]:
        caches = {"block": self._kv_cache.tensors, "state": self._states.tensors}
        return {name: TableRows(tensors.values()) for name, tensors in caches.items() if tensors}

    def close(self) -> None:
        """Gives the memory back; the runner is of no use afterwards."""
        del self._request, self._compiled, self._kv_cache, self._states, self._weights, self._vision
        self._arrays = []
