"""Describes the mmproj files of MiniCPM-V."""

import math

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts
from ouzel.gguf.projectors.kind import (
    Pair,
    Projector,
    Seeing,
    read_colours,
    read_encoder,
)
from ouzel.gguf.projectors.tiles import SIGLIP_LAYER, SIGLIP_OUTER, SIGLIP_PREFIX

_MODES = {2: "4x", 4: "16x"}  # keys are patches along each side of a token's square
_MERGER, _WINDOWS = "merger.mlp.0.", "vision_tower.vit_merger."


def _siglip(facts: Facts) -> JsonObject:
    """Reads the encoder. The file has the side of a slice as image_size; learned positions are a
    square.
    """
    facts.flag("use_gelu", True)
    common = read_encoder(facts)
    places = facts.tensor_shape("v.position_embd.weight")[0]
    return common | {
        "hidden_act": "gelu_pytorch_tanh",
        "image_size": math.isqrt(places) * facts.integer("vision.patch_size"),
    }


def _v4_6(facts: Facts, _: JsonObject) -> Seeing:
    """Reads the file of MiniCPM-V 4.6; llama.cpp has the number of slices in its code."""
    side = facts.integer("vision.projector.scale_factor", 4)
    if side not in _MODES:
        raise ModelLoadError(
            f"{facts.source}: clip.vision.projector.scale_factor must be 2 or 4, found {side}"
        )
    [layer] = facts.integers("vision.wa_layer_indexes", 1)
    return Seeing(
        vision=_siglip(facts) | {"model_type": "minicpmv4_6_vision"},
        config={"insert_layer_id": layer, "downsample_mode": _MODES[side]},
        preprocessor=read_colours(facts)
        | {
            "image_processor_type": "MiniCPMV4_6ImageProcessor",
            "patch_size": facts.integer("vision.patch_size"),
            "scale_resolution": facts.integer("vision.image_size"),
            "downsample_mode": _MODES[side],
        },
    )


MINICPMV = {
    "minicpmv4_6": Projector(
        pairs={"qwen3_5_text": Pair("minicpmv4_6")},
        read=_v4_6,
        features="mm.down.weight",
        feature_token="<|image_pad|>",
        layer=SIGLIP_LAYER,
        layer_prefix=SIGLIP_PREFIX,
        outer=SIGLIP_OUTER
        | {
            "mm.input_norm": _MERGER + "pre_norm",
            "mm.up": _MERGER + "linear_1",
            "mm.down": _MERGER + "linear_2",
            "v.vit_merger.ln1": _WINDOWS + "layer_norm1",
            "v.vit_merger.attn_q": _WINDOWS + "self_attn.q_proj",
            "v.vit_merger.attn_k": _WINDOWS + "self_attn.k_proj",
            "v.vit_merger.attn_v": _WINDOWS + "self_attn.v_proj",
            "v.vit_merger.attn_out": _WINDOWS + "self_attn.out_proj",
            "v.vit_merger.ds_ln": _WINDOWS + "pre_norm",
            "v.vit_merger.ds_ffn_up": _WINDOWS + "linear_1",
            "v.vit_merger.ds_ffn_down": _WINDOWS + "linear_2",
        },
    ),
}
