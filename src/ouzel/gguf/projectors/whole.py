"""Describes the mmproj files of encoders that take pictures in their own shape."""

from collections.abc import Mapping

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.kind import MAX_HEAD_SIZE, Change
from ouzel.gguf.facts import Facts
from ouzel.gguf.projectors.kind import (
    ANY,
    FIRST,
    PATCHES,
    Pair,
    Projector,
    Seeing,
    colours_side_by_side,
    read_colours,
    read_encoder,
)
from ouzel.gguf.projectors.tiles import SIGLIP_LAYER, SIGLIP_OUTER, SIGLIP_PREFIX

_TOWER, _MM = "vision_tower.", "multi_modal_projector."
_POOLING = 3  # llama.cpp's default for Gemma 4
# The tokens of a picture do not attend to each other in these: E2B and E4B (llama.cpp, mtmd.cpp).
_CAUSAL_SIZES = (1536, 2560)


def _pixtral(facts: Facts, _: JsonObject) -> Seeing:
    """Reads the file of Mistral 3, or of Pixtral, which does not merge patches."""
    if facts.number("vision.attention.layer_norm_epsilon") != 1e-5:
        raise ModelLoadError(
            f"{facts.source}: clip.vision.attention.layer_norm_epsilon must be 1e-05, found "
            f"{facts.number('vision.attention.layer_norm_epsilon')}"
        )
    merge = facts.integer("vision.spatial_merge_size", 1)
    has_norm = facts.has_tensor("mm.input_norm.weight")
    side = facts.integer("vision.patch_size")
    config: JsonObject = {"model_type": "mistral3", "spatial_merge_size": merge}
    if not has_norm:
        config = {"model_type": "llava", "vision_feature_select_strategy": "full"}
    return Seeing(
        vision=read_encoder(facts)
        | {
            "model_type": "pixtral",
            "hidden_act": "silu" if facts.flag("use_silu", False) else "gelu",
            "rope_theta": 10000.0,
        },
        config=config
        | {
            "vision_feature_layer": -1,
            "projector_hidden_act": "gelu",
            "multimodal_projector_bias": facts.has_tensor("mm.1.bias"),
        },
        preprocessor=read_colours(facts)
        | {
            "image_processor_type": "PixtralImageProcessor",
            "size": {"longest_edge": facts.integer("vision.image_size")},
            "patch_size": side,
        },
        processor={"patch_size": side, "spatial_merge_size": merge},
    )


def _lfm2(facts: Facts, _: JsonObject) -> Seeing:
    """Reads LFM2-VL's file; llama.cpp has the numbers of tokens and tiles in its code."""
    factor = facts.integer("vision.projector.scale_factor", 2)
    common = read_encoder(facts)
    del common["image_size"]  # any size; the file has a number for older readers
    facts.flag("use_gelu", True)
    return Seeing(
        vision=common
        | {
            "model_type": "siglip2_vision_model",
            "hidden_act": "gelu_pytorch_tanh",
            "num_patches": facts.tensor_shape("v.position_embd.weight")[0],
        },
        config={
            "downsample_factor": factor,
            "projector_hidden_act": "gelu",
            "projector_hidden_size": facts.tensor_shape("mm.1.weight")[0],
            "projector_bias": facts.has_tensor("mm.1.bias"),
            "projector_use_layernorm": facts.has_tensor("mm.input_norm.weight"),
        },
        preprocessor=read_colours(facts)
        | {
            "image_processor_type": "Lfm2VlImageProcessor",
            "downsample_factor": factor,
            "encoder_patch_size": facts.integer("vision.patch_size"),
        },
    )


def _gemma4(facts: Facts, text: JsonObject) -> Seeing:
    common = read_encoder(facts)
    heads = common["num_attention_heads"]
    head_dim = facts.tensor_shape(f"{FIRST}attn_q_norm.weight")
    pooling = facts.integer("vision.projector.scale_factor", _POOLING)
    is_causal = text["hidden_size"] in _CAUSAL_SIZES
    return Seeing(
        vision={
            "model_type": "gemma4_vision",
            "hidden_size": common["hidden_size"],
            "intermediate_size": common["intermediate_size"],
            "num_hidden_layers": common["num_hidden_layers"],
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "head_dim": head_dim[0],
            "patch_size": common["patch_size"],
            "pooling_kernel_size": pooling,
            "position_embedding_size": facts.tensor_shape("v.position_embd.weight")[1],
            "rms_norm_eps": common["layer_norm_eps"],
            "hidden_activation": "gelu_pytorch_tanh",
            "use_clipped_linears": facts.has_tensor(f"{FIRST}attn_q.input_max"),
            "standardize": facts.has_tensor("v.std_bias"),
            "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0},
        },
        text={} if is_causal else {"use_bidirectional_attention": "vision"},
        preprocessor=read_colours(facts)
        | {
            "image_processor_type": "Gemma4ImageProcessor",
            "patch_size": common["patch_size"],
            "pooling_kernel_size": pooling,
        },
    )


def _halves(facts: Facts) -> Mapping[str, Change]:
    """Returns the changes of queries and keys: files have rotary pairs side by side, transformers
    has two halves.
    """
    heads = max(facts.integer("vision.attention.head_count"), 1)
    size = facts.integer("vision.embedding_length") // heads
    if not 0 < size <= MAX_HEAD_SIZE:
        raise ModelLoadError(
            f"{facts.source}: heads must have 1 to {MAX_HEAD_SIZE} dimensions, found {size}"
        )
    order = Change(row_order=(*range(0, size, 2), *range(1, size, 2)))
    return {"attn_q": order, "attn_k": order}


_GEMMA4_MATRICES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_ENDS = [f"{side}_{end}" for side in ("input", "output") for end in ("min", "max")]

WHOLE = {
    "pixtral": Projector(
        pairs={ANY: Pair("llava")},
        more_model_types=("mistral3",),
        read=_pixtral,
        features="mm.2.weight",
        feature_token="[IMG]",
        layer={
            "ln1": "attention_norm",
            "ln2": "ffn_norm",
            "attn_q": "attention.q_proj",
            "attn_k": "attention.k_proj",
            "attn_v": "attention.v_proj",
            "attn_out": "attention.o_proj",
            "ffn_gate": "feed_forward.gate_proj",
            "ffn_up": "feed_forward.up_proj",
            "ffn_down": "feed_forward.down_proj",
        },
        layer_prefix=_TOWER + "transformer.layers.",
        outer={
            PATCHES: _TOWER + "patch_conv",
            "v.pre_ln": _TOWER + "ln_pre",
            "mm.1": _MM + "linear_1",
            "mm.2": _MM + "linear_2",
            "mm.input_norm": _MM + "norm",
            "mm.patch_merger": _MM + "patch_merger.merging_layer",
        },
        changes=_halves,
        # a row of the language model's embedding
        left_out=frozenset({"v.token_embd.img_break"}),
    ),
    "lfm2": Projector(
        pairs={"lfm2": Pair("lfm2_vl"), "lfm2_moe": Pair("lfm2_vl")},
        read=_lfm2,
        features="mm.2.weight",
        feature_token="<image>",
        layer=SIGLIP_LAYER,
        layer_prefix=SIGLIP_PREFIX,
        outer=SIGLIP_OUTER
        | {"mm.input_norm": _MM + "layer_norm", "mm.1": _MM + "linear_1", "mm.2": _MM + "linear_2"},
        changes=colours_side_by_side,
    ),
    "gemma4v": Projector(
        pairs={"gemma4_text": Pair("gemma4")},
        read=_gemma4,
        features="mm.input_projection.weight",
        feature_token="<|image|>",
        layer={
            "ln1": "input_layernorm",
            "attn_post_norm": "post_attention_layernorm",
            "ln2": "pre_feedforward_layernorm",
            "ffn_post_norm": "post_feedforward_layernorm",
            "attn_q_norm": "self_attn.q_norm",
            "attn_k_norm": "self_attn.k_norm",
        }
        | {part: f"{name}.linear" for part, name in _GEMMA4_MATRICES.items()},
        layer_prefix=_TOWER + "encoder.layers.",
        outer={
            PATCHES: _TOWER + "patch_embedder.input_proj",
            "mm.input_projection": "embed_vision.embedding_projection",
        },
        bare={
            "v.position_embd.weight": _TOWER + "patch_embedder.position_embedding_table",
            "v.std_bias": _TOWER + "std_bias",
            "v.std_scale": _TOWER + "std_scale",
        }
        | {
            f"{part}.{end}": f"{name}.{end}"
            for part, name in _GEMMA4_MATRICES.items()
            for end in _ENDS
        },
        changes=colours_side_by_side,
    ),
}
