"""Gives the variables of CTranslate2's Whisper the names of transformers.

CTranslate2 joins the matrices of queries, keys and values; their parts become tensors again. Keys
have no bias in Whisper, and zeros in the joined one.
"""

import re
from collections.abc import Mapping

from ouzel.whisper_files.stored_tensor import StoredTensor

_LAYER = re.compile(r"(encoder|decoder)/layer_(\d+)/(\w+/\w+)/(weight|bias|gamma|beta)")
_PARTS = {
    "self_attention/layer_norm": ("self_attn_layer_norm",),
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention/linear_1": ("self_attn.out_proj",),
    "attention/layer_norm": ("encoder_attn_layer_norm",),
    "attention/linear_0": ("encoder_attn.q_proj",),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "attention/linear_2": ("encoder_attn.out_proj",),
    "ffn/layer_norm": ("final_layer_norm",),
    "ffn/linear_0": ("fc1",),
    "ffn/linear_1": ("fc2",),
}
_KINDS = {"gamma": "weight", "beta": "bias", "weight": "weight", "bias": "bias"}
_OTHERS = {
    **{
        f"encoder/{conv}/{kind}": f"model.encoder.{conv}.{kind}"
        for conv in ("conv1", "conv2")
        for kind in ("weight", "bias")
    },
    **{
        f"{side}/layer_norm/{kind}": f"model.{side}.layer_norm.{_KINDS[kind]}"
        for side in ("encoder", "decoder")
        for kind in ("gamma", "beta")
    },
    **{
        f"{side}/position_encodings/encodings": f"model.{side}.embed_positions.weight"
        for side in ("encoder", "decoder")
    },
    "decoder/embeddings/weight": "model.decoder.embed_tokens.weight",
    "decoder/projection/weight": "proj_out.weight",
}


def rename_ctranslate2(tensors: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Returns the tensors by transformers' names; unknown ones keep their names."""
    renamed = {}
    for name, stored in tensors.items():
        match = _LAYER.fullmatch(name)
        if match is None or match[3] not in _PARTS:
            renamed[_OTHERS.get(name, name)] = stored
            continue
        side, layer, part, kind = match.groups()
        modules = _PARTS[part]
        for module, piece in zip(modules, stored.split(len(modules)), strict=True):
            if not (module.endswith("k_proj") and kind == "bias"):
                renamed[f"model.{side}.layers.{layer}.{module}.{_KINDS[kind]}"] = piece
    return renamed
