"""Runs batches on a compiled model: one `infer` a step.

A model with a prediction layer needs a second `infer` for the head.
"""

from collections.abc import Generator, Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.adapters.adapter_slots import AdapterSlots
from ouzel.backends.openvino.cache.kv_cache import KvCache
from ouzel.backends.openvino.graph.attention import TWO_WAY_BEGINS
from ouzel.backends.openvino.graph.cross_attention import CROSS_QUERIES
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.assistant_runner import AssistantRunner
from ouzel.backends.openvino.runners.audio_runner import AudioRunner
from ouzel.backends.openvino.runners.chunked_rows import ChunkedRows, is_in_chunks
from ouzel.backends.openvino.runners.graph_request import GraphRequest
from ouzel.backends.openvino.runners.image_rows import features_shape, image_inputs
from ouzel.backends.openvino.runners.prediction_runner import PredictionRunner
from ouzel.backends.openvino.runners.row_padding import add_padding_rows
from ouzel.backends.openvino.runners.state_tables import NEXT_PREFIX, StateTables
from ouzel.backends.openvino.runners.step_inputs import paging_inputs, rope_inputs, two_way_inputs
from ouzel.backends.openvino.runners.tables import TableRows
from ouzel.backends.openvino.runners.vision_runner import VisionRunner
from ouzel.engine.base import CacheRows, ForwardBatch
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import AudioInput, ImageInput, MediaInput, SoundInput


def position_axes(compiled: ov.CompiledModel) -> tuple[int, ...]:
    """Returns (3,) if the input `position_ids` is [3, T]: time, height and width of an image's
    tokens.

    Returns () if it is [T], or if there is no such input.
    """
    shapes = (
        port.get_partial_shape()
        for port in compiled.inputs
        if port.get_any_name() == "position_ids"
    )
    return tuple(axis.get_length() for shape in shapes for axis in list(shape)[:-1])


def find_output(compiled: ov.CompiledModel, name: str) -> int:
    """Returns the index of an output, 0 if no output has the name."""
    names = [port.get_names() for port in compiled.outputs]
    return next((index for index, each in enumerate(names) if name in each), 0)


class OpenVINORunner:
    """Runs the model; implements `ModelRunner`.

    The runner owns the compiled model, the arrays that the model points into, and the caches.
    """

    def __init__(
        self,
        compiled: ov.CompiledModel,
        caches: tuple[KvCache, StateTables],
        language_model: LanguageModel,
        info: EngineInfo,
        *,
        vision: VisionRunner[ImageInput] | None = None,
        hearing: VisionRunner[SoundInput] | None = None,
        prediction: PredictionRunner | AssistantRunner | None = None,
        audio: AudioRunner | None = None,
    ) -> None:
        self.info = info
        self.prediction = prediction
        # hidden rows of the last batch, [T, hidden_size]; empty without a prediction layer
        self.hidden_rows = np.zeros((0, language_model.hidden_size), np.float32)
        self._hidden_output, self._logits_output, self._queries_output = (
            find_output(compiled, name) for name in ("hidden_rows", "logits", CROSS_QUERIES)
        )
        self._vision = vision
        self._hearing = hearing
        self.audio = audio
        self._features_shape = features_shape(compiled)
        self._compiled = compiled
        self._kv_cache, self._states = caches
        self._weights = language_model.arrays
        self._ropes = language_model.ropes
        self._query_scale = language_model.query_scale
        tensors = self._kv_cache.tensors | self._states.tensors
        if audio is not None:
            tensors |= audio.slots.tensors
        self._request = GraphRequest(compiled, tensors)
        self._adapters = None
        if language_model.adapters is not None:
            self._adapters = AdapterSlots(language_model.adapters, info.max_loras, self._request)
        self._chunked_rows = ChunkedRows()
        self._position_axes = position_axes(compiled)
        self._next_states = {
            port.get_any_name().removeprefix(NEXT_PREFIX): index
            for index, port in enumerate(compiled.outputs)
            if port.get_any_name().startswith(NEXT_PREFIX)
        }

    @property
    def num_threads(self) -> int:
        return int(self._compiled.get_property("INFERENCE_NUM_THREADS"))

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        if not self.info.separates_rows:
            return self._run(batch)
        return self._run(add_padding_rows(batch, self.info.num_blocks))[: len(batch.sampled_rows)]

    def _run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        self._request.run(self._inputs(batch))
        self._keep_states(batch)
        if self.prediction is not None:
            self.hidden_rows = self._request.output(self._hidden_output)
        if not batch.sampled_rows.size:  # openvino cannot show an empty tensor as an array
            return np.zeros((0, self.info.vocab_size), np.float32)
        if self.prediction is not None and self.prediction.has_head_of_model:
            return self.prediction.logits(self.hidden_rows[batch.sampled_rows])
        logits = self._request.output(self._logits_output)
        return logits.reshape(len(batch.sampled_rows), logits.shape[-1])

    def _inputs(self, batch: ForwardBatch) -> dict[str, NDArray[np.generic]]:
        inputs = (
            paging_inputs(batch)
            | rope_inputs(self._ropes, batch)
            | self._states.inputs(batch.state_slots)
        )
        if self._next_states and batch.state_slots is not None:
            inputs |= self._chunked_rows.inputs(batch.subsequence_begins, batch.state_slots[:, 0])
        if self._request.has_input("position_ids"):
            shape = (*self._position_axes, len(batch.token_ids))
            inputs["position_ids"] = np.array(np.broadcast_to(batch.positions, shape), order="C")
        if self._query_scale is not None:
            inputs["query_scale"] = self._query_scale.at(batch.positions)
        if self._features_shape is not None:
            inputs |= image_inputs(batch, self._features_shape)
        if self._request.has_input(TWO_WAY_BEGINS):
            inputs |= two_way_inputs(batch)
        if self._adapters is not None:
            inputs |= self._adapters.inputs(batch)
        if self.audio is not None:
            # A check of the model runs without sound, and attends to slot 0.
            slots = batch.audio_slots
            inputs |= self.audio.slots.reading_inputs(
                np.zeros(len(batch.token_ids), np.int32) if slots is None else slots
            )
        return inputs

    def output(self, index: int) -> NDArray[np.float32]:
        """Returns an output of the last run by its index in the graph: a view, valid until the next
        run.
        """
        return self._request.output(index)

    def fill_adapter_slot(self, slot: int, path: str) -> bytes:
        assert self._adapters is not None, "the model takes no adapters"
        return self._adapters.fill(slot, path)

    def clear_adapter_slot(self, slot: int) -> None:
        assert self._adapters is not None, "the model takes no adapters"
        self._adapters.clear(slot)

    def encode(self, image: MediaInput) -> Generator[None, None, NDArray[np.float32]]:
        if isinstance(image, SoundInput):
            assert self._hearing is not None, "the model takes no sounds"
            return self._hearing.encode(image)
        assert self._vision is not None, "the model takes no images"
        return self._vision.encode(image)

    def encode_audio(self, audio: AudioInput, slot: int) -> Generator[None]:
        assert self.audio is not None, "the model reads no sound"
        return self.audio.encode(audio, slot)

    def read_cross_queries(self) -> NDArray[np.float32]:
        return self._request.output(self._queries_output)

    def align(
        self, queries: NDArray[np.float32], slot: int, num_frames: int
    ) -> NDArray[np.float32]:
        assert self.audio is not None, "the model reads no sound"
        return self.audio.align(queries, slot, num_frames)

    def _keep_states(self, batch: ForwardBatch) -> None:
        """Writes the final states of sequences in chunks, which are outputs, into their slots."""
        if not self._next_states or batch.state_slots is None:
            return
        slots = batch.state_slots[is_in_chunks(batch.subsequence_begins), 1]
        for name, index in self._next_states.items() if len(slots) else ():
            self._states.write(name, slots, self._request.output(index))

    def read_keys(self, num_tokens: int) -> dict[str, NDArray[np.float32]]:
        """Returns the keys of the first tokens in the first blocks, [heads, tokens, channels] by
        cache name.
        """
        return self._kv_cache.read_keys(num_tokens)

    def largest_cached(self, num_tokens: int) -> float:
        """Returns the largest key or value of the first tokens in the first blocks.

        The cache must hold floats.
        """
        # the tensors of the model itself, without the prediction layer
        own = {name for name in self._kv_cache.tensors if self._request.has_input(name)}
        return self._kv_cache.largest(num_tokens, own)

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._kv_cache.copy_blocks(sources, destinations)

    @property
    def cache_rows(self) -> Mapping[str, CacheRows]:
        rows = {"block": TableRows(self._kv_cache.tensors.values())}
        if states := self._states.tensors:
            rows["state"] = TableRows(states.values())
        return rows

    def close(self) -> None:
        """Frees the memory; the runner cannot be used afterwards."""
        del (
            self._request,
            self._compiled,
            self._kv_cache,
            self._states,
            self._weights,
            self._vision,
            self._hearing,
            self.audio,
            self.prediction,
        )
        del self._adapters
