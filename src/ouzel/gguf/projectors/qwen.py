"""Describes the mmproj files of Qwen2-VL, 2.5-VL, 3-VL and 3.5, and of GLM-OCR."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts
from ouzel.gguf.projectors.kind import (
    FIRST,
    PATCHES,
    Pair,
    Projector,
    Seeing,
    inner_size,
    read_colours,
    read_encoder,
)

_NUM_FRAMES = 2
_MAX_LAYERS = 1024
# llama.cpp's limits, in tokens of a picture (clip.cpp: set_limit_image_tokens)
_MIN_TOKENS, _MAX_TOKENS = 8, 4096
_WINDOW_SIZE = 112  # pixels; llama.cpp has the number in its code


def _vision(facts: Facts) -> JsonObject:
    """Reads the common keys. Only GLM-OCR uses the file's epsilon of norms; for Qwen's files it is
    the language model's, and transformers has its own number.
    """
    common = read_encoder(facts)
    return {
        "depth": common["num_hidden_layers"],
        "hidden_size": common["hidden_size"],
        "intermediate_size": common["intermediate_size"],
        "num_heads": common["num_attention_heads"],
        "patch_size": common["patch_size"],
        "spatial_merge_size": facts.integer("vision.spatial_merge_size", 2),
        "temporal_patch_size": _NUM_FRAMES,
        "in_channels": 3,
    }


def _preprocessor(facts: Facts, kind: str, num_frames: int = 1) -> JsonObject:
    side, merge = facts.integer("vision.patch_size"), facts.integer("vision.spatial_merge_size", 2)
    pixels = (side * merge) ** 2 * num_frames
    return read_colours(facts) | {
        "image_processor_type": kind,
        "patch_size": side,
        "merge_size": merge,
        "temporal_patch_size": _NUM_FRAMES,
        "size": {
            "shortest_edge": facts.integer("vision.image_min_pixels", _MIN_TOKENS * pixels),
            "longest_edge": facts.integer("vision.image_max_pixels", _MAX_TOKENS * pixels),
        },
    }


def _qwen2(facts: Facts, text: JsonObject) -> Seeing:
    vision = _vision(facts)
    size = facts.integer("vision.embedding_length")
    return Seeing(
        vision=vision
        | {
            "embed_dim": size,
            "hidden_size": text["hidden_size"],
            "mlp_ratio": inner_size(facts) / max(size, 1),
            "hidden_act": "quick_gelu",
        },
        preprocessor=_preprocessor(facts, "Qwen2VLImageProcessor"),
    )


def _qwen2_5(facts: Facts, text: JsonObject) -> Seeing:
    vision, step = _vision(facts), facts.integer("vision.n_wa_pattern")
    depth = facts.integer("vision.block_count")
    if not 0 < step <= _MAX_LAYERS or depth > _MAX_LAYERS:
        raise ModelLoadError(
            f"{facts.source}: clip.vision.n_wa_pattern and block_count must be 1 to "
            f"{_MAX_LAYERS}, found {step} and {depth}"
        )
    _require(facts, "use_silu")
    return Seeing(
        vision=vision
        | {
            "hidden_act": "silu",
            "out_hidden_size": text["hidden_size"],
            "window_size": _WINDOW_SIZE,
            "fullatt_block_indexes": list(range(step - 1, depth, step)),
        },
        preprocessor=_preprocessor(facts, "Qwen2VLImageProcessor"),
    )


def _qwen3(facts: Facts, text: JsonObject) -> Seeing:
    vision = _vision(facts)
    deep: list[int] = []
    if facts.has("vision.is_deepstack_layers"):
        flags = facts.flags("vision.is_deepstack_layers", facts.integer("vision.block_count"))
        deep = [layer for layer, is_deep in enumerate(flags) if is_deep]
    _require(facts, "use_gelu")
    return Seeing(
        vision=vision
        | {
            "hidden_act": "gelu_pytorch_tanh",
            "out_hidden_size": text["hidden_size"],
            "num_position_embeddings": facts.tensor_shape("v.position_embd.weight")[0],
            "deepstack_visual_indexes": deep,
        },
        preprocessor=_preprocessor(facts, "Qwen2VLImageProcessor"),
    )


def _glm(facts: Facts, text: JsonObject) -> Seeing:
    """Reads GLM-OCR's file. GLM-4.1V has the same type, but positions and no norms of heads."""
    if not facts.has_tensor(f"{FIRST}attn_q_norm.weight"):
        raise ModelLoadError(
            f"{facts.source}: clip.projector_type glm4v is supported for GLM-OCR only, "
            "whose layers have attn_q_norm"
        )
    _require(facts, "use_silu")
    return Seeing(
        vision=_vision(facts)
        | {
            "hidden_act": "silu",
            "out_hidden_size": text["hidden_size"],
            "rms_norm_eps": facts.number("vision.attention.layer_norm_epsilon"),
        },
        preprocessor=_preprocessor(facts, "Glm46VImageProcessor", _NUM_FRAMES),
    )


def _require(facts: Facts, key: str) -> None:
    if not facts.flag(key, False):
        raise ModelLoadError(f"{facts.source}: clip.{key} must be true, found false")


_LAYER = {
    "ln1": "norm1",
    "ln2": "norm2",
    "attn_qkv": "attn.qkv",
    "attn_out": "attn.proj",
}
_GATED = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_PREFIX = "visual.blocks."
_MERGER = "visual.merger."

QWEN = {
    "qwen2vl_merger": Projector(
        pairs={"qwen2_vl_text": Pair("qwen2_vl")},
        read=_qwen2,
        features="mm.2.weight",
        feature_token="<|image_pad|>",
        layer=_LAYER | {"ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"},
        layer_prefix=_PREFIX,
        outer={
            PATCHES: "visual.patch_embed.proj",
            "v.post_ln": _MERGER + "ln_q",
            "mm.0": _MERGER + "mlp.0",
            "mm.2": _MERGER + "mlp.2",
        },
    ),
    "qwen2.5vl_merger": Projector(
        pairs={"qwen2_vl_text": Pair("qwen2_5_vl", "qwen2_5_vl_text")},
        read=_qwen2_5,
        features="mm.2.weight",
        feature_token="<|image_pad|>",
        layer=_LAYER | _GATED,
        layer_prefix=_PREFIX,
        outer={
            PATCHES: "visual.patch_embed.proj",
            "v.post_ln": _MERGER + "ln_q",
            "mm.0": _MERGER + "mlp.0",
            "mm.2": _MERGER + "mlp.2",
        },
    ),
    "qwen3vl_merger": Projector(
        pairs={
            "qwen3_vl_text": Pair("qwen3_vl"),
            "qwen3_vl_moe_text": Pair("qwen3_vl_moe"),
            "qwen3_5_text": Pair("qwen3_5"),
            "qwen3_5_moe_text": Pair("qwen3_5_moe"),
        },
        read=_qwen3,
        features="mm.2.weight",
        feature_token="<|image_pad|>",
        layer=_LAYER | {"ffn_up": "mlp.linear_fc1", "ffn_down": "mlp.linear_fc2"},
        layer_prefix=_PREFIX,
        outer={
            PATCHES: "visual.patch_embed.proj",
            "v.position_embd": "visual.pos_embed",
            "v.post_ln": _MERGER + "norm",
            "mm.0": _MERGER + "linear_fc1",
            "mm.2": _MERGER + "linear_fc2",
        },
    ),
    "glm4v": Projector(
        pairs={"glm_ocr_text": Pair("glm_ocr")},
        read=_glm,
        features="mm.down.weight",
        feature_token="<|image|>",
        layer=_LAYER | _GATED | {"attn_q_norm": "attn.q_norm", "attn_k_norm": "attn.k_norm"},
        layer_prefix=_PREFIX,
        outer={
            PATCHES: "visual.patch_embed.proj",
            "v.post_ln": "visual.post_layernorm",
            "mm.patch_merger": "visual.downsample",
            "mm.model.fc": _MERGER + "proj",
            "mm.post_norm": _MERGER + "post_projection_norm",
            "mm.gate": _MERGER + "gate_proj",
            "mm.up": _MERGER + "up_proj",
            "mm.down": _MERGER + "down_proj",
        },
    ),
}
