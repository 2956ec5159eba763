"""What an architecture of GGUF says of its model's configuration and tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts

# Parts of layers, `blk.<number>.<this>.weight`: `model.layers.<number>.<that>.weight`.
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
MAX_HEAD_SIZE = 2**13  # several times what any published model has


@dataclass(frozen=True, slots=True)
class Experts:
    """The matrices of all experts are one tensor each, `ffn_gate_exps`; transformers has one for each expert,
    `experts.<number>.gate_proj`, or, where those of gate and up are alternating rows of one, two for all experts."""

    prefix: str = "mlp.experts."
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    are_alternating: bool = False

    def name(self, part: str) -> str | None:
        """Returns transformers' name for a part of a layer; None where it is no matrix of experts."""
        return {"ffn_gate_exps": self.gate, "ffn_up_exps": self.up, "ffn_down_exps": self.down}.get(
            part
        )


@dataclass(frozen=True, slots=True)
class Join:
    """A part is the upper of two that transformers has in one matrix; of [heads, ., .], of each head."""

    below: str
    name: str
    is_transposed: bool = False  # the upper part of each head
    is_flat: bool = False  # the rows of all heads are those of one matrix


@dataclass(frozen=True, slots=True)
class Split:
    """Of each so many rows of a part the first are of one matrix in transformers, the others of a second."""

    first: str
    second: str
    size: int  # of either


@dataclass(frozen=True, slots=True)
class Change:
    """How a tensor that is stored otherwise becomes the one that transformers has."""

    # of each so many rows, or elements of a vector; None: as they come
    row_order: tuple[int, ...] | None = None
    column_blocks: tuple[int, ...] | None = None  # the order of so many equal blocks of columns
    is_rate: bool = False  # it is -exp() of what transformers has
    is_flat: bool = False  # it is a vector in transformers


AS_STORED = Change()


def _nothing(_: Facts) -> JsonObject:
    return {}


def _unsplit(_: Facts) -> Mapping[str, Split]:
    return {}


def _unchanged(_: Facts) -> Mapping[str, Change]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    model_type: str
    # what is there besides, or instead of, what all have
    config: Callable[[Facts], JsonObject] = _nothing
    layer: Mapping[str, str] = field(default_factory=lambda: LAYER)
    outer: Mapping[str, str] = field(
        default_factory=dict
    )  # tensors outside of layers with names of their own
    experts: Experts | None = None
    bare: Mapping[str, str] = field(
        default_factory=dict
    )  # parts of layers that have no `.weight` in transformers
    joins: Mapping[str, Join] = field(default_factory=dict)  # by the upper part
    splits: Callable[[Facts], Mapping[str, Split]] = _unsplit  # by part of a layer
    changes: Callable[[Facts], Mapping[str, Change]] = _unchanged  # by part of a layer
    yarn: Mapping[str, object] = field(
        default_factory=dict
    )  # of its rotary positions, what no file says
    # all others are stored with the 1 that the model adds; None: none
    unshifted_norms: frozenset[str] | None = None


def permuted_heads(facts: Facts) -> Mapping[str, Change]:
    """Rows of a head are stored as pairs that are turned together; transformers has two halves of those pairs."""
    usual = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
    size = facts.integer("attention.key_length", usual)
    if not 0 < size <= MAX_HEAD_SIZE:
        raise ModelLoadError(
            f"{facts.source}: heads must have 1 to {MAX_HEAD_SIZE} dimensions, found {size}"
        )
    order = Change(row_order=(*range(0, size, 2), *range(1, size, 2)))
    return {"attn_q": order, "attn_k": order}


def biases(facts: Facts) -> JsonObject:
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "mlp_bias": facts.has_tensor("blk.0.ffn_up.bias"),
    }


def experts_config(facts: Facts) -> JsonObject:
    return {
        "num_experts": facts.integer("expert_count"),
        "num_experts_per_tok": facts.integer("expert_used_count"),
        "moe_intermediate_size": facts.integer("expert_feed_forward_length"),
    }
