"""Gives the tensors of whisper.cpp's files the names of transformers; they have OpenAI's."""

import re
from collections.abc import Mapping

from ouzel.whisper_files.stored_tensor import StoredTensor

_LAYER = re.compile(r"(encoder|decoder)\.blocks\.(\d+)\.(.+)\.(weight|bias)")
_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}
_PARTS = {
    **{f"attn.{theirs}": f"self_attn.{ours}" for theirs, ours in _ATTENTION.items()},
    **{f"cross_attn.{theirs}": f"encoder_attn.{ours}" for theirs, ours in _ATTENTION.items()},
    "attn_ln": "self_attn_layer_norm",
    "cross_attn_ln": "encoder_attn_layer_norm",
    "mlp_ln": "final_layer_norm",
    "mlp.0": "fc1",
    "mlp.2": "fc2",
}
_OTHERS = {
    "encoder.positional_embedding": "model.encoder.embed_positions.weight",
    "decoder.positional_embedding": "model.decoder.embed_positions.weight",
    "decoder.token_embedding.weight": "model.decoder.embed_tokens.weight",
    **{
        f"encoder.{theirs}.{kind}": f"model.encoder.{ours}.{kind}"
        for theirs, ours in {"conv1": "conv1", "conv2": "conv2", "ln_post": "layer_norm"}.items()
        for kind in ("weight", "bias")
    },
    **{f"decoder.ln.{kind}": f"model.decoder.layer_norm.{kind}" for kind in ("weight", "bias")},
}


def rename_ggml(tensors: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Returns the tensors by transformers' names; unknown ones keep their names."""
    return {_rename(name): stored for name, stored in tensors.items()}


def _rename(name: str) -> str:
    match = _LAYER.fullmatch(name)
    if match is None or match[3] not in _PARTS:
        return _OTHERS.get(name, name)
    side, layer, part, kind = match.groups()
    return f"model.{side}.layers.{layer}.{_PARTS[part]}.{kind}"
