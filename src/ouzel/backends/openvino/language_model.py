"""A loader hands this to the runner."""

import mmap
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.cache.kv_cache import context_length
from ouzel.backends.openvino.graph.adapter_shape import AdapterShape
from ouzel.backends.openvino.graph.key_scales import KeyScales, scale_keys
from ouzel.backends.openvino.graph.query_scale import QueryScale
from ouzel.backends.openvino.graph.rope import Rope
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.vision_model import VisionModel


@dataclass(frozen=True, kw_only=True)
class PredictionGraphs:
    """A model whose last layer predicts further tokens gives hidden rows, and these make something
    of them.
    """

    head: ov.Model  # logits of `hidden_rows`
    layer: ov.Model  # hidden rows for the tokens behind `input_ids`, of these and `hidden_rows`
    arrays: list[
        NDArray[np.generic]
    ]  # that their constants point into, besides those of the model's graph


@dataclass(frozen=True, slots=True)
class VectorHead:
    """A model makes a vector of each prompt, of its last token: the hidden row, or a value for each
    label.
    """

    num_labels: int = 0  # 0: the hidden row


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """It has a graph that is ready to be compiled, and what running it takes."""

    graph: (
        ov.Model
    )  # its output is `logits`, or with a prediction `hidden_rows`, those of all tokens
    arrays: list[
        NDArray[np.generic]
    ]  # the graph's constants point into them: keep them as long as the compiled model
    ropes: dict[
        str, Rope
    ]  # angles for the inputs `rope_cos.<name>`; empty where the graph takes position_ids, or none
    hidden_size: int
    vocab_size: int
    max_positions: int
    has_relative_positions: bool = True  # else a shift of all positions changes the logits
    weights: str = ""  # how they are encoded, in a word or two; its loader knows
    query_scale: QueryScale | None = None  # for the input `query_scale`
    mappings: tuple[mmap.mmap, ...] = ()  # the files that arrays lie in, the vision encoder's too
    vision: VisionModel | None = None  # where the checkpoint sees
    sees_images_whole: bool = False  # the tokens of an image attend to each other
    cache_entry: Path | None = None  # that the weights are mapped from
    is_entry_new: bool = False  # it was made just now, of what the checkpoint holds
    prediction: PredictionGraphs | None = None
    vector_head: VectorHead | None = None  # where it makes vectors of prompts, and no tokens
    adapters: AdapterShape | None = None  # where it takes them
    key_scales: KeyScales = field(default_factory=dict)  # by which the graph's keys are divided
    # others' files, and others' encodings of the same ones, have another; its loader knows
    identity: str = ""

    @property
    def graphs(self) -> list[ov.Model]:
        return (
            [self.graph]
            if self.prediction is None
            else [self.graph, self.prediction.head, self.prediction.layer]
        )

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of the weights, of which running the model makes a copy."""
        return sum(map(len, self.mappings)) or sum(array.nbytes for array in self.arrays)

    @property
    def num_relative_positions(self) -> int:
        """The logits are the same wherever within so many positions the tokens lie."""
        if not self.has_relative_positions:
            return 0
        return self.query_scale.interval if self.query_scale else self.max_positions

    @property
    def default_positions(self) -> int:
        """Returns the context that is served unless the user names one: with LongRoPE the original
        context.
        """
        return min([self.max_positions, *(rope.default_positions for rope in self.ropes.values())])

    def context_length(self, option: int | None) -> int:
        """Returns the tokens of the longest request, for a context that the user may have named.
        Raises ModelLoadError.
        """
        return context_length(option, self.max_positions, self.default_positions)

    def for_context(self, max_model_len: int) -> "LanguageModel":
        """Returns it with what depends on the length of the longest request."""
        return replace(
            self, ropes={name: rope.for_context(max_model_len) for name, rope in self.ropes.items()}
        )

    def with_key_scales(self, scales: KeyScales) -> "LanguageModel":
        """Returns it with the same graph, which is changed."""
        scale_keys(self.graph, scales)
        return replace(self, key_scales=scales)
