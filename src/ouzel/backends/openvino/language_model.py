"""Describes a loaded decoder for its runner."""

import mmap
from collections.abc import Mapping
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
from ouzel.backends.openvino.speech_model import SpeechModel
from ouzel.backends.openvino.vision_model import HearingModel, VisionModel
from ouzel.backends.openvino.weights.source import Tensor


@dataclass(frozen=True, kw_only=True)
class PredictionGraphs:
    """The graphs that draft tokens: of a prediction layer, an EAGLE-3 head or an assistant.

    A model with a prediction gives hidden rows; `layer` takes them. With a `head` of the model's
    own, the model gives nothing else, and `head` makes the logits of the model and of the layer.
    With an `embedding` the layer takes `embedded_rows` instead of `input_ids`, and gives its own
    logits before the hidden rows.
    """

    layer: ov.Model  # gives the hidden rows of the next tokens from `input_ids` and `hidden_rows`
    ropes: dict[str, Rope]  # angles for the inputs of `layer`
    hidden_size: int  # columns of the rows that `layer` takes
    # the arrays that only the constants of these graphs point into
    arrays: list[NDArray[np.generic]]
    # Gives the logits of `hidden_rows`; None: the model and the layer give their logits themselves.
    head: ov.Model | None = None
    # The model's ids of the tokens that have logits of the layer; None: all tokens have.
    token_ids: NDArray[np.int64] | None = None
    identity: str = ""  # names the weights if they are no part of the model's
    # The model's embedding, which makes `embedded_rows` of `input_ids`; None: the layer has it
    # inside.
    embedding: ov.Model | None = None


@dataclass(frozen=True, kw_only=True)
class LentCache:
    """A cache of a model that an assistant reads."""

    layer: int  # the number in the names of the cache's inputs
    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True, kw_only=True)
class LentParts:
    """The parts of a model that an assistant uses.

    A model with such parts gives hidden rows.
    """

    head: ov.Model  # gives the logits of `hidden_rows`
    embedding: ov.Model  # gives `embedded_rows` of `input_ids`
    caches: dict[str, LentCache]  # keys are kinds of layers


@dataclass(frozen=True, slots=True)
class VectorHead:
    """The head of a model that makes a vector of each prompt, from its last token.

    The vector is the hidden row of the token, or has one value for each label.
    """

    num_labels: int = 0  # 0: the vector is the hidden row


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """A graph that is ready to be compiled, and the facts that its runner needs."""

    # gives `logits`; with a prediction also `hidden_rows` of all tokens, or them alone
    graph: ov.Model
    # The graph's constants point into these arrays: keep them as long as the compiled model.
    arrays: list[NDArray[np.generic]]
    # angles for the inputs `rope_cos.<name>`; empty if the graph takes position_ids or no positions
    ropes: dict[str, Rope]
    hidden_size: int
    vocab_size: int
    max_positions: int
    usual_positions: int = 0  # the context unless the user names one; 0: `max_positions`
    # The tensor of the embedding; None: the graph is an IR.
    embedding: Tensor | None = None
    has_relative_positions: bool = True  # False: a shift of all positions changes the logits
    weights: str = ""  # the encoding of the weights, as users read it
    query_scale: QueryScale | None = None  # values for the input `query_scale`
    # the files that hold the arrays, also the vision encoder's arrays
    mappings: tuple[mmap.mmap, ...] = ()
    unmapped_bytes: int = 0  # the bytes of weights that no file holds
    vision: VisionModel | None = None  # None: the model takes no images
    hearing: HearingModel | None = None  # None: no sounds stand in prompts
    speech: SpeechModel | None = None  # None: the model reads no sound
    # the tokens of an image attend to each other in both directions
    attends_to_whole_images: bool = False
    attends_to_whole_prompts: bool = False  # so do all tokens of a prompt
    cache_entry: Path | None = None  # the entry that the weights are mapped from
    is_entry_new: bool = False  # this start has made the entry from the checkpoint
    prediction: PredictionGraphs | None = None
    lent: LentParts | None = None  # None: no assistant uses the model
    vector_head: VectorHead | None = None  # None: the model generates tokens
    adapters: AdapterShape | None = None  # None: the model takes no adapters
    key_scales: KeyScales = field(default_factory=dict)  # divisors of the keys in the graph
    # Names the weights in the identity of the KV cache: other files or encodings have another
    # identity.
    identity: str = ""

    @property
    def graphs(self) -> list[ov.Model]:
        """Returns the model's graph; with a prediction its layer, its head and its embedding if it
        has them; of a speech model also the graph that fills slots.
        """
        if self.speech is not None:
            return [self.graph, self.speech.filling]
        if self.prediction is None:
            return [self.graph]
        further = (self.prediction.layer, self.prediction.head, self.prediction.embedding)
        return [self.graph, *(each for each in further if each is not None)]

    @property
    def predicts(self) -> bool:
        """Tells whether a layer of the checkpoint itself proposes further tokens."""
        prediction = self.prediction
        return prediction is not None and not (prediction.head is None or prediction.embedding)

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of the weights; running the model makes a copy of them."""
        return sum(map(len, self.mappings)) + self.unmapped_bytes

    @property
    def num_relative_positions(self) -> int:
        """Returns the positions within which a shift of all tokens leaves the logits the same."""
        if not self.has_relative_positions:
            return 0
        return self.query_scale.interval if self.query_scale else self.max_positions

    @property
    def default_positions(self) -> int:
        """Returns the context in tokens that is served unless the user names one.

        For LongRoPE this is the original context, for a model without positions a usual one, else
        the model's own limit.
        """
        limits = [self.max_positions, *(rope.default_positions for rope in self.ropes.values())]
        return min(limits + [self.usual_positions] * bool(self.usual_positions))

    def context_length(self, option: int | None) -> int:
        """Returns the tokens of the longest request; `option` is the user's limit, if any.

        Raises ModelLoadError if the option is more than the model's own limit.
        """
        return context_length(option, self.max_positions, self.default_positions)

    def for_context(self, max_model_len: int) -> "LanguageModel":
        """Returns the model with angles for requests of up to `max_model_len` tokens."""
        prediction = self.prediction
        if prediction is not None:
            prediction = replace(prediction, ropes=fit_ropes(prediction.ropes, max_model_len))
        return replace(self, ropes=fit_ropes(self.ropes, max_model_len), prediction=prediction)

    def with_key_scales(self, scales: KeyScales) -> "LanguageModel":
        """Divides the keys in the graph by the scales, and returns the model with these scales.

        The returned model and this one share the graph, which is changed in place.
        """
        scale_keys(self.graph, scales)
        return replace(self, key_scales=scales)


def fit_ropes(ropes: Mapping[str, Rope], max_model_len: int) -> dict[str, Rope]:
    """Returns the ropes with angles for requests of up to `max_model_len` tokens."""
    return {name: rope.for_context(max_model_len) for name, rope in ropes.items()}
