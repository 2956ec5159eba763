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
# llama.cpp's numbers of MiniCPM-V 2.6, o 2.6, V 4.0, V 4.5 and o 4.5
_VERSIONS = (3, 4, 5, 6, 100045)
_QUERY = "resampler.query"
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


def _resampler(facts: Facts, _: JsonObject) -> Seeing:
    """Reads the file of MiniCPM-V 2.6 to 4.5, or of a MiniCPM-o with the same encoder.

    llama.cpp has the number of slices in its code.
    """
    version = facts.integer("minicpmv_version")
    if version not in _VERSIONS:
        supported = ", ".join(map(str, _VERSIONS))
        raise ModelLoadError(
            f"{facts.source}: clip.minicpmv_version must be one of {supported}, found {version}"
        )
    num_queries = facts.tensor_shape(_QUERY)[0]
    facts.integer("minicpmv_query_num", num_queries)
    colours = read_colours(facts)
    return Seeing(
        vision=_siglip(facts) | {"model_type": "siglip"},
        config={"query_num": num_queries},
        preprocessor={
            "image_processor_type": "MiniCPMVImageProcessor",
            "norm_mean": colours["image_mean"],
            "norm_std": colours["image_std"],
            "patch_size": facts.integer("vision.patch_size"),
            "scale_resolution": facts.integer("vision.image_size"),
            "image_feature_size": num_queries,
            "use_image_id": True,  # the value in published files of these versions
        },
    )


_IN_PROJ = tuple(f"resampler.attn.{part}" for part in "qkv")
MINICPMV = {
    "resampler": Projector(
        pairs={text: Pair("minicpmv") for text in ("qwen2", "llama", "qwen3")},
        read=_resampler,
        features="resampler.proj.weight",
        feature_token="<unk>",
        layer=SIGLIP_LAYER,
        layer_prefix=SIGLIP_PREFIX,
        outer=SIGLIP_OUTER
        | {
            "resampler.kv": "resampler.kv_proj",
            "resampler.attn.out": "resampler.attn.out_proj",
            **{f"resampler.ln_{part}": f"resampler.ln_{part}" for part in ("q", "kv", "post")},
        },
        bare={_QUERY: _QUERY, "resampler.proj.weight": "resampler.proj"},
        joins={
            f"resampler.attn.in_proj_{kind}": tuple(f"{part}.{kind}" for part in _IN_PROJ)
            for kind in ("weight", "bias")
        },
        left_out=frozenset({"resampler.pos_embed_k"}),  # sines and cosines
    ),
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
