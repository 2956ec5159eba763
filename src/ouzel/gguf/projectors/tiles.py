"""Describes the mmproj files of encoders that take square tiles of one size."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts
from ouzel.gguf.projectors.kind import (
    ANY,
    FIRST,
    PATCHES,
    Pair,
    Projector,
    Seeing,
    read_colours,
    read_encoder,
)

_BILINEAR, _LANCZOS = 2, 1  # Pillow's numbers of filters
_MAX_RESOLUTIONS = 256
_MAX_FEATURE_LAYERS = 64


def _siglip(facts: Facts) -> JsonObject:
    facts.flag("use_gelu", True)  # transformers' SigLIP has no other activation
    return read_encoder(facts) | {
        "model_type": "siglip_vision_model",
        "hidden_act": "gelu_pytorch_tanh",
    }


def _rows_per_tile(facts: Facts, factor: int) -> int:
    """Returns the rows of features of a tile, of which each covers factor^2 patches."""
    side = facts.integer("vision.image_size") // max(facts.integer("vision.patch_size"), 1)
    if factor < 1 or side < factor:
        raise ModelLoadError(
            f"{facts.source}: clip.vision.projector.scale_factor must be 1 to {side}, "
            f"the patches along a side, found {factor}"
        )
    return (side // factor) ** 2


def _gemma3(facts: Facts, _: JsonObject) -> Seeing:
    num_rows = _rows_per_tile(facts, facts.integer("vision.projector.scale_factor", 4))
    side = facts.integer("vision.image_size")
    return Seeing(
        vision=_siglip(facts),
        config={"mm_tokens_per_image": num_rows},
        preprocessor=read_colours(facts)
        | {
            "image_processor_type": "Gemma3ImageProcessor",
            "resample": _BILINEAR,
            "size": {"height": side, "width": side},
        },
        processor={"image_seq_length": num_rows},
    )


def _idefics3(facts: Facts, _: JsonObject) -> Seeing:
    factor = facts.integer("vision.projector.scale_factor", 2)
    side = facts.integer("vision.image_size")
    return Seeing(
        vision=_siglip(facts),
        config={"scale_factor": factor},
        preprocessor=read_colours(facts)
        | {
            "image_processor_type": "Idefics3ImageProcessor",
            "resample": _LANCZOS,
            "size": {"longest_edge": facts.integer("vision.preproc_image_size", 4 * side)},
            "max_image_size": {"longest_edge": side},
        },
        processor={"image_seq_len": _rows_per_tile(facts, factor)},
    )


def _internvl(facts: Facts, text: JsonObject) -> Seeing:
    """Reads InternVL's file. Only the tower of six billion parameters has RMS norms, without bias.

    transformers' activation is the exact one; llama.cpp computes an approximation.
    """
    factor = facts.integer("vision.projector.scale_factor", 2)
    num_rows = _rows_per_tile(facts, factor)
    facts.flag("use_gelu", True)
    side = facts.integer("vision.image_size")
    has_head_norms = facts.has_tensor(f"{FIRST}attn_q_norm.weight")
    has_biases = facts.has_tensor(f"{FIRST}ln1.bias")
    return Seeing(
        vision=read_encoder(facts)
        | {
            "hidden_act": "gelu",
            "attention_bias": facts.has_tensor(f"{FIRST}attn_q.bias")
            or facts.has_tensor(f"{FIRST}attn_qkv.bias"),
            "use_qk_norm": has_head_norms,
            "norm_type": "layer_norm" if has_biases else "rms_norm",
        },
        config={"downsample_ratio": 1 / factor},
        preprocessor=read_colours(facts)
        | {
            "image_processor_type": "GotOcr2ImageProcessor",
            "size": {"height": side, "width": side},
            "min_patches": facts.integer("vision.preproc_min_tiles", 1),
            "max_patches": facts.integer("vision.preproc_max_tiles", 12),
        },
        processor={"image_seq_length": num_rows},
    )


def _llava(facts: Facts, text: JsonObject) -> Seeing:
    """Reads the file of LLaVA 1.5, or of LLaVA-NeXT, which has resolutions.

    The converter leaves out the layers that the model does not use. A tower with a row in
    front of the patches is CLIP's, another SigLIP's.
    """
    is_clip = facts.has_tensor("v.class_embd")
    for key in ("vision.projection_dim", "vision.image_crop_resolution"):
        facts.integer(key, 0)
    for key in ("vision.mm_patch_merge_type", "vision.mm_projector_type"):
        facts.text(key, "")
    facts.text("vision.image_aspect_ratio", "")
    facts.integer("vision.image_split_resolution", 0)
    vision = read_encoder(facts) | {"model_type": "clip_vision_model"}
    vision["hidden_act"] = "gelu" if facts.flag("use_gelu", False) else "quick_gelu"
    if not is_clip:
        vision |= {"model_type": "siglip_vision_model", "hidden_act": "gelu_pytorch_tanh"}
    common: JsonObject = {
        "vision_feature_layer": _feature_layers(facts),
        "vision_feature_select_strategy": "default" if is_clip else "full",
        "projector_hidden_act": "gelu",
        "multimodal_projector_bias": facts.has_tensor("mm.0.bias"),
    }
    side = facts.integer("vision.image_size")
    size: JsonObject = {"size": {"height": side, "width": side}}
    if is_clip:
        size = {
            "size": {"shortest_edge": side},
            "crop_size": {"height": side, "width": side},
            "do_center_crop": True,
        }
    kind = "CLIPImageProcessor" if is_clip else "SiglipImageProcessor"
    if facts.has("vision.image_grid_pinpoints"):
        numbers = facts.integer_list("vision.image_grid_pinpoints", 2 * _MAX_RESOLUTIONS)
        resolutions = [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=False)]
        common |= {"model_type": "llava_next", "image_grid_pinpoints": resolutions}
        kind, size = "LlavaNextImageProcessor", size | {"image_grid_pinpoints": resolutions}
    return Seeing(
        vision=vision,
        config=common,
        preprocessor=read_colours(facts) | size | {"image_processor_type": kind},
    )


def _feature_layers(facts: Facts) -> int | list[int]:
    if not facts.has("vision.feature_layer"):
        return -1
    layers = facts.integer_list("vision.feature_layer", _MAX_FEATURE_LAYERS)
    return layers[0] if len(layers) == 1 else layers


_TOWER = "vision_tower."
_MM = "multi_modal_projector."
_LAYER = {
    "ln1": "layer_norm1",
    "ln2": "layer_norm2",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_out": "self_attn.out_proj",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}
SIGLIP_LAYER, SIGLIP_PREFIX = _LAYER, _TOWER + "encoder.layers."
SIGLIP_OUTER = {
    PATCHES: _TOWER + "embeddings.patch_embedding",
    "v.position_embd": _TOWER + "embeddings.position_embedding",
    "v.post_ln": _TOWER + "post_layernorm",
}
_INTERNVL_LAYER = {
    "ln1": "layernorm_before",
    "ln2": "layernorm_after",
    "attn_q": "attention.q_proj",
    "attn_k": "attention.k_proj",
    "attn_v": "attention.v_proj",
    "attn_out": "attention.projection_layer",
    "attn_q_norm": "attention.q_norm",
    "attn_k_norm": "attention.k_norm",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}

TILES = {
    "gemma3": Projector(
        pairs={"gemma3_text": Pair("gemma3")},
        read=_gemma3,
        features="mm.input_projection.weight",
        feature_token="<image_soft_token>",
        layer=_LAYER,
        layer_prefix=SIGLIP_PREFIX,
        outer=SIGLIP_OUTER | {"mm.soft_emb_norm": _MM + "mm_soft_emb_norm"},
        bare={"mm.input_projection.weight": _MM + "mm_input_projection_weight"},
        transposed=frozenset({"mm.input_projection.weight"}),
        # The file has the weights with the 1 that the model adds.
        shifts={"mm.soft_emb_norm": -1.0},
    ),
    "idefics3": Projector(
        pairs={ANY: Pair("idefics3")},
        read=_idefics3,
        features="mm.model.fc.weight",
        feature_token="<image>",
        layer=_LAYER,
        layer_prefix=SIGLIP_PREFIX,
        outer=SIGLIP_OUTER | {"mm.model.fc": _MM + "modality_projection.proj"},
    ),
    "internvl": Projector(
        pairs={ANY: Pair("internvl")},
        read=_internvl,
        features="mm.model.mlp.3.weight",
        feature_token="<IMG_CONTEXT>",
        layer=_INTERNVL_LAYER,
        layer_prefix=_TOWER + "encoder.layer.",
        outer={
            PATCHES: _TOWER + "embeddings.patch_embeddings.projection",
            "mm.model.mlp.0": _MM + "layer_norm",
            "mm.model.mlp.1": _MM + "linear_1",
            "mm.model.mlp.3": _MM + "linear_2",
        },
        bare={
            "v.class_embd": _TOWER + "embeddings.cls_token",
            "v.position_embd.weight": _TOWER + "embeddings.position_embeddings",
            "ls1.weight": "lambda_1",
            "ls2.weight": "lambda_2",
        },
    ),
    "mlp": Projector(
        pairs={ANY: Pair("llava")},
        more_model_types=("llava_next",),
        read=_llava,
        features="mm.2.weight",
        feature_token="<image>",
        layer=_LAYER,
        layer_prefix=SIGLIP_PREFIX,
        outer=SIGLIP_OUTER
        | {
            "v.pre_ln": _TOWER + "pre_layrnorm",
            "mm.0": _MM + "linear_1",
            "mm.2": _MM + "linear_2",
        },
        bare={
            "v.class_embd": _TOWER + "embeddings.class_embedding",
            "model.image_newline": "image_newline",
            "v.image_newline": "image_newline",
        },
    ),
}
