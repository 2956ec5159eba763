"""Gemma 4 is the language model of its checkpoints with images and sound.

The family has E2B and E4B (embeddings for each layer, shared keys and values), 31B (keys that are
the values, too) and 26B-A4B (experts beside a dense feed-forward layer). Reference: transformers,
models/gemma4/modeling_gemma4.py and configuration_gemma4.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import GatedUnit, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.experts import ExpertsShape, ExpertTensors
from ouzel.backends.openvino.graph.gemma4 import (
    Gemma4Experts,
    Gemma4Layer,
    Gemma4Shape,
    LayerEmbeddings,
    build_gemma4,
)
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import Rope, read_rope
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.gemma3_text import root
from ouzel.checkpoint.context_length import rope_type
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

SLIDING, FULL = "sliding_attention", "full_attention"

DEFAULTS = {
    "vocab_size": 262_144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "global_head_dim": 512,
    "max_position_embeddings": 131_072,
    "sliding_window": 512,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262_144,
}
ROPES = {
    SLIDING: {"rope_type": "default", "rope_theta": 10_000.0},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1_000_000.0},
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return build_gemma4(b, read_shape(config.with_defaults(**DEFAULTS)))


def read_shape(config: HfConfig) -> Gemma4Shape:
    refuse_unsupported_attention(config)
    layers = read_layers(config)
    head_dims = {layer.kind: layer.head_dim for layer in layers}
    if any(layer.head_dim != head_dims[layer.kind] for layer in layers):
        raise ModelLoadError(
            f"{config.source}: per_layer_config must have one head_dim for all layers of a kind"
        )
    return Gemma4Shape(
        hidden_size=config.size("hidden_size"),
        vocab_size=config.size("vocab_size"),
        num_heads=config.size("num_attention_heads"),
        layers=layers,
        ropes={kind: make_rope(config, kind, head_dim) for kind, head_dim in head_dims.items()},
        norm=Norm(config.number("rms_norm_eps", 1e-6)),
        activation=read_activation(config, "hidden_activation", "gelu_pytorch_tanh"),
        has_attention_bias=config.flag("attention_bias", False),
        tied_embeddings=config.flag("tie_word_embeddings", True),
        embedding_factor=root(config.size("hidden_size"), config),
        layer_embeddings=read_layer_embeddings(config),
        experts=read_experts(config) if config.flag("enable_moe_block", False) else None,
        logits_softcap=config.number("final_logit_softcapping", 0.0),
    )


def refuse_unsupported_attention(config: HfConfig) -> None:
    # "vision" has no effect on text
    if config.text("use_bidirectional_attention", "vision") != "vision":
        raise ModelLoadError(
            f"{config.source}: use_bidirectional_attention must be null or vision, "
            f"found {config.text('use_bidirectional_attention')}"
        )


def read_layers(config: HfConfig) -> tuple[Gemma4Layer, ...]:
    kinds = read_kinds(config)
    caches = read_caches(config, kinds)
    inner_size = config.size("intermediate_size")
    is_doubled = config.flag("use_double_wide_mlp", False)
    window = config.size("sliding_window")
    keys_are_values = config.flag("attention_k_eq_v", False)
    layers = []
    for index, kind in enumerate(kinds):
        head_dim, num_kv_heads = read_head_sizes(config, index, kind)
        layers.append(
            Gemma4Layer(
                kind=kind,
                head_dim=head_dim,
                num_kv_heads=num_kv_heads,
                sliding_window=window if kind == SLIDING else 0,
                has_values=kind == SLIDING or not keys_are_values,
                cache=caches[index],
                inner_size=2 * inner_size if is_doubled and caches[index] != index else inner_size,
            )
        )
    return tuple(layers)


def read_caches(config: HfConfig, kinds: list[str]) -> list[int]:
    """Returns for each layer the layer whose keys and values it reads.

    The last layers share the keys and values of the last other layer of their kind.
    """
    num_shared = config.integer("num_kv_shared_layers", 0)
    num_own = len(kinds) - num_shared
    if num_shared < 0 or set(kinds[: max(num_own, 0)]) != set(kinds):
        raise ModelLoadError(
            f"{config.source}: num_kv_shared_layers must leave a layer of each kind of "
            f"{len(kinds)}, found {num_shared}"
        )
    last = {kind: index for index, kind in enumerate(kinds[:num_own])}
    return [*range(num_own), *(last[kind] for kind in kinds[num_own:])]


def read_kinds(config: HfConfig) -> list[str]:
    """Returns the kind of each layer; the last layer never has a window.

    Without `layer_types` five of six layers have a window.
    """
    num_layers = config.size("num_hidden_layers")
    kinds = [FULL if (index + 1) % 6 == 0 else SLIDING for index in range(num_layers)]
    if config.has("layer_types"):
        kinds = config.texts("layer_types", num_layers)
    if unknown := set(kinds) - {SLIDING, FULL}:
        raise ModelLoadError(
            f"{config.source}: layer_types must be {SLIDING} and {FULL}, found {', '.join(unknown)}"
        )
    return [*kinds[:-1], FULL]


def read_head_sizes(config: HfConfig, index: int, kind: str) -> tuple[int, int]:
    """Returns a layer's head_dim and number of key-value heads.

    For layers without a window, published checkpoints have `global_head_dim` and
    `num_global_key_value_heads`; transformers 5 saves them in `per_layer_config`, by the number of
    the layer.
    """
    head_dim, num_kv_heads = config.size("head_dim"), config.size("num_key_value_heads")
    layers = config.section("per_layer_config")
    if layers is not None:
        own = next(
            (layers.section(key) for key in layers.values if key.isdecimal() and int(key) == index),
            None,
        )
        own = own or HfConfig({})
        if unknown := set(own.values) - {"head_dim", "num_key_value_heads"}:
            raise ModelLoadError(f"{layers.source}: {', '.join(sorted(unknown))} is not supported")
        head_dim = own.size("head_dim", head_dim)
        num_kv_heads = own.size("num_key_value_heads", num_kv_heads)
    elif kind == FULL:
        head_dim = config.size("global_head_dim")
        if config.flag("attention_k_eq_v", False):
            num_kv_heads = config.size("num_global_key_value_heads", num_kv_heads)
    num_heads = config.size("num_attention_heads")
    if num_heads % num_kv_heads:
        raise ModelLoadError(
            f"{config.source}: num_attention_heads {num_heads} is no multiple of the "
            f"{num_kv_heads} key-value heads of layer {index}"
        )
    return head_dim, num_kv_heads


def make_rope(config: HfConfig, kind: str, head_dim: int) -> Rope:
    """Returns the rope of a kind of layer.

    Proportional positions rotate a share of each head, at the frequencies of the whole head.
    """
    sections = config.section("rope_parameters") or HfConfig(dict(ROPES))
    section = sections.section(kind)
    if section is None:
        raise ModelLoadError(f"{config.source}: rope_parameters must have {kind}")
    is_proportional = rope_type(section) == "proportional"
    parameters = section.values
    if is_proportional:
        parameters = {"rope_type": "default", "rope_theta": section.number("rope_theta", 10_000.0)}
    positions = config.size("max_position_embeddings")
    values = {"rope_parameters": parameters, "max_position_embeddings": positions}
    rope = read_rope(HfConfig(values, config.source), head_dim)
    if not is_proportional:
        return rope
    frequencies = rope.inverse_frequencies / section.number("factor", 1.0)
    frequencies[int(section.number("partial_rotary_factor", 1.0) * head_dim // 2) :] = 0.0
    return replace(rope, inverse_frequencies=frequencies)


def read_layer_embeddings(config: HfConfig) -> LayerEmbeddings | None:
    if not config.values.get("hidden_size_per_layer_input"):
        return None
    size = config.size("hidden_size_per_layer_input")
    vocab_size = config.size("vocab_size_per_layer_input")
    if vocab_size < config.size("vocab_size"):
        raise ModelLoadError(
            f"{config.source}: vocab_size_per_layer_input must be >= vocab_size "
            f"{config.size('vocab_size')}, found {vocab_size}"
        )
    image_token_id = config.integer("pad_token_id", 0)
    if not 0 <= image_token_id < vocab_size:
        raise ModelLoadError(
            f"{config.source}: pad_token_id must be >= 0 and < vocab_size_per_layer_input "
            f"{vocab_size}, found {image_token_id}"
        )
    return LayerEmbeddings(
        size=size, vocab_size=vocab_size, factor=root(size, config), image_token_id=image_token_id
    )


def read_experts(config: HfConfig) -> Gemma4Experts:
    num_experts = config.size("num_experts")
    return Gemma4Experts(
        routing=Routing(
            num_experts=num_experts, num_chosen=config.size("top_k_experts"), is_normalised=True
        ),
        shape=ExpertsShape(
            num_experts=num_experts,
            hidden_size=config.size("hidden_size"),
            inner_size=config.size("moe_intermediate_size"),
            unit=GatedUnit(
                activation=read_activation(config, "hidden_activation", "gelu_pytorch_tanh")
            ),
            tensors=ExpertTensors(are_separate=False),
        ),
    )
