"""Gemma 3n is the language model of its checkpoints with images and sound.

Layers compute one of several streams of rows; layers with embeddings of their own, and shared keys
and values, are as in Gemma 4. Reference: transformers, models/gemma3n/modeling_gemma3n.py and
configuration_gemma3n.py.
"""

from statistics import NormalDist

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import every_layer_but, sliding_windows
from ouzel.backends.openvino.graph.gemma3n import Gemma3nShape, build_gemma3n
from ouzel.backends.openvino.graph.gemma4 import Gemma4Layer, Gemma4Shape, LayerEmbeddings
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import read_ropes_by_kind
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.gemma3_text import root
from ouzel.backends.openvino.models.gemma4_text import FULL, SLIDING, read_caches
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {
    "vocab_size": 262_400,
    "hidden_size": 2048,
    "intermediate_size": 16_384,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "max_position_embeddings": 32_768,
    "rope_theta": 1_000_000.0,
    "sliding_window": 512,
    "final_logit_softcapping": 30.0,
    "vocab_size_per_layer_input": 262_144,
    "hidden_size_per_layer_input": 256,
    "altup_num_inputs": 4,
    "num_kv_shared_layers": 15,
    "laurel_rank": 64,
}
NUM_SPARSE_LAYERS, SPARSITY = 10, 0.95  # the first layers, unless the config names others


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return build_gemma3n(b, read_shape(config.with_defaults(**DEFAULTS)))


def read_shape(config: HfConfig) -> Gemma3nShape:
    num_streams, active = config.size("altup_num_inputs"), config.integer("altup_active_idx", 0)
    if not 0 <= active < num_streams:
        raise ModelLoadError(
            "config.json: altup_active_idx must be >= 0 and < altup_num_inputs "
            f"{num_streams}, found {active}"
        )
    return Gemma3nShape(
        decoder=read_decoder(config),
        num_streams=num_streams,
        active=active,
        scales_active=config.flag("altup_correct_scale", True),
        laurel_rank=config.size("laurel_rank"),
        cutoffs=read_cutoffs(config),
    )


def read_decoder(config: HfConfig) -> Gemma4Shape:
    hidden_size, head_dim = config.size("hidden_size"), config.size("head_dim")
    embedding_size = config.size("hidden_size_per_layer_input")
    full, sliding = read_ropes_by_kind(
        config, head_dim, sliding_theta=config.number("rope_local_base_freq", 10_000.0)
    )
    return Gemma4Shape(
        hidden_size=hidden_size,
        vocab_size=config.size("vocab_size"),
        num_heads=config.size("num_attention_heads"),
        layers=read_layers(config, head_dim),
        ropes={FULL: full, SLIDING: sliding},
        norm=Norm(config.number("rms_norm_eps", 1e-6)),
        activation=read_activation(config, "hidden_activation", "gelu_pytorch_tanh"),
        has_attention_bias=config.flag("attention_bias", False),
        tied_embeddings=config.flag("tie_word_embeddings", True),
        embedding_factor=root(hidden_size, config),
        layer_embeddings=LayerEmbeddings(
            size=embedding_size,
            vocab_size=config.size("vocab_size_per_layer_input"),
            factor=root(embedding_size, config),
            image_token_id=0,
        ),
        experts=None,
        logits_softcap=config.number("final_logit_softcapping", 0.0),
    )


def read_layers(config: HfConfig, head_dim: int) -> tuple[Gemma4Layer, ...]:
    windows = sliding_windows(config, every_layer_but(5))
    kinds = [SLIDING if window else FULL for window in windows]
    num_heads, num_kv_heads = (
        config.size("num_attention_heads"),
        config.size("num_key_value_heads"),
    )
    if num_heads % num_kv_heads:
        raise ModelLoadError(
            f"config.json: num_attention_heads {num_heads} is no multiple of num_key_value_heads "
            f"{num_kv_heads}"
        )
    return tuple(
        Gemma4Layer(
            kind=kind,
            head_dim=head_dim,
            num_kv_heads=num_kv_heads,
            sliding_window=window,
            has_values=True,
            cache=cache,
            inner_size=inner_size,
        )
        for kind, window, cache, inner_size in zip(
            kinds, windows, read_caches(config, kinds), read_inner_sizes(config), strict=True
        )
    )


def read_inner_sizes(config: HfConfig) -> list[int]:
    """Returns the inner size of each layer; the config has one for all, or a list."""
    num_layers, sizes = config.size("num_hidden_layers"), config.values["intermediate_size"]
    if not isinstance(sizes, list):
        return [config.size("intermediate_size")] * num_layers
    read = config.integers("intermediate_size", num_layers)
    return [config.with_values(intermediate_size=size).size("intermediate_size") for size in read]


def read_cutoffs(config: HfConfig) -> tuple[float | None, ...]:
    """Returns the cutoff of each layer: a normal distribution has `sparsity` of its values below.

    Raises ModelLoadError unless each sparsity is a share.
    """
    num_layers, key = config.size("num_hidden_layers"), "activation_sparsity_pattern"
    num_sparse = NUM_SPARSE_LAYERS if num_layers > NUM_SPARSE_LAYERS else 0
    sparsities = [SPARSITY] * num_sparse + [0.0] * (num_layers - num_sparse)
    if config.has(key):
        sparsities = config.numbers(key, num_layers)
    for sparsity in sparsities:
        if not 0 <= sparsity < 1:
            raise ModelLoadError(f"config.json: {key} must be >= 0 and < 1, found {sparsity:g}")
    return tuple(NormalDist().inv_cdf(sparsity) if sparsity else None for sparsity in sparsities)
