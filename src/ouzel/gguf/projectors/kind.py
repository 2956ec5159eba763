"""Describes how the metadata and tensors of an mmproj file map to transformers.

An mmproj file has the vision encoder of a model, and the layers that project its rows to the size
of the language model. `clip.projector_type` names the family. Keys and names of tensors are from
llama.cpp, tools/mtmd/clip-impl.h and clip.cpp; the changes to tensors are from its conversion/.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.kind import Change
from ouzel.gguf.facts import Facts

ANY = "*"  # any language model
MAX_PATCH_SIDE = 256  # pixels; several times as many as in any published model
FIRST = "v.blk.0."
PATCHES = "v.patch_embd"


@dataclass(frozen=True, slots=True)
class Pair:
    """Names an encoder and a language model together: `model_type` is the type of both."""

    model_type: str
    text_model_type: str = ""  # empty: as in the file of the language model


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeing:
    """The contents of the JSON files that describe a model that sees."""

    vision: JsonObject  # vision_config
    preprocessor: JsonObject  # preprocessor_config.json
    processor: JsonObject = field(default_factory=dict)  # processor_config.json
    config: JsonObject = field(default_factory=dict)  # more keys of config.json
    text: JsonObject = field(default_factory=dict)  # keys that replace keys of text_config


def _unchanged(_: Facts) -> Mapping[str, Change]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Projector:
    """Describes one kind of mmproj files."""

    # model_type of the language model alone, or ANY -> the pair
    pairs: Mapping[str, Pair]
    # types that `read` may give instead of the pair's
    more_model_types: tuple[str, ...] = ()
    # reads the file; the second argument is the config of the language model
    read: Callable[[Facts, JsonObject], Seeing]
    features: str  # a tensor with a row for each number of a feature
    feature_token: str  # stands for a row of features in the prompt
    # `v.blk.<number>.<key>.weight` -> `<layer_prefix><number>.<value>.weight`
    layer: Mapping[str, str]
    layer_prefix: str
    outer: Mapping[str, str]  # names of tensors outside layers, without `.weight` and `.bias`
    bare: Mapping[str, str] = field(default_factory=dict)  # whole names
    # whole names of tensors that lie below each other in transformers, by the name there
    joins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changes: Callable[[Facts], Mapping[str, Change]] = _unchanged  # keys are keys of the maps
    shifts: Mapping[str, float] = field(default_factory=dict)  # are added to the stored values
    # matrices that transformers stores transposed
    transposed: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()  # tensors without use

    def feature_size(self, facts: Facts) -> int:
        shape = facts.tensor_shape(self.features)
        return shape[-1] if self.features in self.transposed else shape[0]


def read_encoder(facts: Facts) -> JsonObject:
    """Reads the keys of `vision_config` that most families have."""
    return {
        "hidden_size": facts.integer("vision.embedding_length"),
        "intermediate_size": inner_size(facts),
        "num_hidden_layers": facts.integer("vision.block_count"),
        "num_attention_heads": facts.integer("vision.attention.head_count"),
        "patch_size": facts.integer("vision.patch_size"),
        "image_size": facts.integer("vision.image_size"),
        "layer_norm_eps": facts.number("vision.attention.layer_norm_epsilon"),
    }


def read_colours(facts: Facts) -> JsonObject:
    return {
        "image_mean": facts.decimals("vision.image_mean", 3),
        "image_std": facts.decimals("vision.image_std", 3),
    }


def inner_size(facts: Facts) -> int:
    """Returns the rows of the first matrix of a feed-forward layer.

    The key feed_forward_length has other numbers in some files.
    """
    facts.integer("vision.feed_forward_length", 0)
    rows, columns = facts.matrix_shape(f"{FIRST}ffn_up.weight")
    return columns if are_swapped(facts) else rows


def are_swapped(facts: Facts) -> bool:
    """Tells whether ffn_down is the first matrix of the layer: older converters wrote so."""
    size = facts.integer("vision.embedding_length")
    rows, columns = facts.matrix_shape(f"{FIRST}ffn_down.weight")
    if rows == columns:  # the shape does not tell
        return facts.text("projector_type", "") == "mlp"
    return columns == size


def colours_side_by_side(facts: Facts) -> Mapping[str, Change]:
    """Returns the change of patches: files have a plane for each colour, transformers has the
    colours of a pixel side by side.
    """
    side = facts.integer("vision.patch_size")
    if not 0 < side <= MAX_PATCH_SIDE:
        raise ModelLoadError(
            f"{facts.source}: clip.vision.patch_size must be 1 to {MAX_PATCH_SIDE}, found {side}"
        )
    pixels = side * side
    order = (colour * pixels + pixel for pixel in range(pixels) for colour in range(3))
    return {PATCHES: Change(column_blocks=tuple(order))}
