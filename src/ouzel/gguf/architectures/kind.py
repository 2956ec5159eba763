"""Describes how the configuration and tensors of a GGUF architecture map to transformers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts

# `blk.<number>.<key>.weight` in GGUF -> `model.layers.<number>.<value>.weight` in transformers.
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
MAX_HEAD_SIZE = 2**13  # several times as many as in any published model


@dataclass(frozen=True, slots=True)
class Experts:
    """Names the experts' matrices.

    GGUF has one tensor for all experts, such as `ffn_gate_exps`. transformers has one matrix per
    expert, `experts.<number>.gate_proj`. With `are_alternating`, transformers has two tensors for
    all experts, one of which has rows of gate and up in turn.
    """

    prefix: str = "mlp.experts."
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    are_alternating: bool = False

    def name(self, part: str) -> str | None:
        """Returns transformers' name for a part of a layer; None if the part is not of experts."""
        names = {"ffn_gate_exps": self.gate, "ffn_up_exps": self.up, "ffn_down_exps": self.down}
        return names.get(part)


@dataclass(frozen=True, slots=True)
class Join:
    """Joins two parts of a layer that are one matrix in transformers; for a tensor [heads, ., .],
    in each head.

    The description belongs to the upper part.
    """

    below: str  # the lower part
    name: str  # transformers' name
    is_transposed: bool = False  # the upper part of each head is transposed
    is_flat: bool = False  # transformers has the rows of all heads in one matrix


@dataclass(frozen=True, slots=True)
class Split:
    """Splits a part of a layer that is two matrices in transformers.

    Of each 2 * `size` rows, the first half belongs to `first`, the other half to `second`.
    """

    first: str
    second: str
    size: int  # rows


@dataclass(frozen=True, slots=True)
class Cut:
    """Cuts a part of a layer, and its bias, into matrices that lie below each other."""

    rows: Mapping[str, int]  # the rows of each matrix, by transformers' names in their order


@dataclass(frozen=True, slots=True)
class Change:
    """Describes how a stored tensor differs from the tensor of transformers."""

    # new order of each group of so many rows, or elements of a vector; None: unchanged
    row_order: tuple[int, ...] | None = None
    column_blocks: tuple[int, ...] | None = None  # new order of equal blocks of columns
    is_rate: bool = False  # the file has -exp() of the values in transformers
    is_flat: bool = False  # a vector in transformers


@dataclass(frozen=True, slots=True)
class Prediction:
    """Names the layer that predicts further tokens, which is a layer behind the last one in GGUF.

    Its parts that other layers lack have a `nextn.` before their names.
    """

    count_key: str  # key of config.json with the number of such layers
    parts: Mapping[str, str]  # transformers' names of its own parts
    layer: str = ""  # prefix of its other parts; empty: all parts have the prefix of a layer


# DeepSeek and GLM give the layer a number, as GGUF does.
NUMBERED_PREDICTION = Prediction(
    count_key="num_nextn_predict_layers",
    parts={
        "nextn.eh_proj": "eh_proj",
        "nextn.enorm": "enorm",
        "nextn.hnorm": "hnorm",
        "nextn.shared_head_norm": "shared_head.norm",
        "nextn.embed_tokens": "embed_tokens",
        "nextn.shared_head_head": "shared_head.head",
    },
)
QWEN_PREDICTION = Prediction(
    count_key="mtp_num_hidden_layers",
    parts={
        "nextn.eh_proj": "mtp.fc",
        "nextn.enorm": "mtp.pre_fc_norm_embedding",
        "nextn.hnorm": "mtp.pre_fc_norm_hidden",
        "nextn.shared_head_norm": "mtp.norm",
        "nextn.embed_tokens": "mtp.embed_tokens",
        "nextn.shared_head_head": "mtp.shared_head.head",
    },
    layer="mtp.layers.0.",
)
AS_STORED = Change()


def _nothing(_: Facts) -> JsonObject:
    return {}


def _unsplit(_: Facts) -> Mapping[str, Split]:
    return {}


def _uncut(_: Facts) -> Mapping[str, Cut]:
    return {}


def _unchanged(_: Facts) -> Mapping[str, Change]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Describes how one GGUF architecture maps to a model of transformers."""

    model_type: str
    # configuration keys that other architectures lack, or that replace the common ones
    config: Callable[[Facts], JsonObject] = _nothing
    layer: Mapping[str, str] = field(default_factory=lambda: LAYER)
    outer: Mapping[str, str] = field(default_factory=dict)  # names of tensors outside layers
    prefix: str = "model.layers."  # stands before the number of a layer
    has_own_keys: bool = False  # `config` returns all keys, and no common ones are read
    makes_vectors: bool = False  # all models of the architecture read whole texts
    # Tensors outside layers that hold several matrices; transformers numbers them after the name.
    stacks: Mapping[str, str] = field(default_factory=dict)
    experts: Experts | None = None
    # parts of layers whose names in transformers have no `.weight`
    bare: Mapping[str, str] = field(default_factory=dict)
    in_config: frozenset[str] = frozenset()  # parts of layers that only `config` reads
    joins: Mapping[str, Join] = field(default_factory=dict)  # keys are upper parts
    splits: Callable[[Facts], Mapping[str, Split]] = _unsplit  # keys are parts of a layer
    cuts: Callable[[Facts], Mapping[str, Cut]] = _uncut  # keys are parts of a layer
    changes: Callable[[Facts], Mapping[str, Change]] = _unchanged  # keys are parts of a layer
    # settings of YaRN that files do not have
    yarn: Mapping[str, object] = field(default_factory=dict)
    # None: a layer that predicts further tokens is left out
    prediction: Prediction | None = None
    # Norms without the 1 that the model adds; all other norms are stored with it. None: no norm is.
    unshifted_norms: frozenset[str] | None = None


def permute_heads(facts: Facts) -> Mapping[str, Change]:
    """Returns the changes of queries and keys: files have rotary pairs side by side, transformers
    has two halves.
    """
    usual = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
    size = facts.integer("attention.key_length", usual)
    if not 0 < size <= MAX_HEAD_SIZE:
        raise ModelLoadError(
            f"{facts.source}: heads must have 1 to {MAX_HEAD_SIZE} dimensions, found {size}"
        )
    order = Change(row_order=(*range(0, size, 2), *range(1, size, 2)))
    return {"attn_q": order, "attn_k": order}


def read_biases(facts: Facts) -> JsonObject:
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "mlp_bias": facts.has_tensor("blk.0.ffn_up.bias"),
    }


def read_experts(facts: Facts) -> JsonObject:
    return {
        "num_experts": facts.integer("expert_count"),
        "num_experts_per_tok": facts.integer("expert_used_count"),
        "moe_intermediate_size": facts.integer("expert_feed_forward_length"),
    }
