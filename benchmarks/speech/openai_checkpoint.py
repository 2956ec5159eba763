"""Loads a checkpoint of transformers into openai-whisper, which reads only its own files."""

import json
from pathlib import Path
from typing import Any  # torch is absent where types are checked

import torch
import whisper
from safetensors.torch import load_file

# parts of names in transformers -> their names in openai-whisper
_NAMES = (
    ("model.", ""),
    ("layers.", "blocks."),
    ("encoder_attn_layer_norm", "cross_attn_ln"),
    ("self_attn_layer_norm", "attn_ln"),
    ("final_layer_norm", "mlp_ln"),
    ("encoder_attn.", "cross_attn."),
    ("self_attn.", "attn."),
    ("q_proj", "query"),
    ("k_proj", "key"),
    ("v_proj", "value"),
    ("out_proj", "out"),
    ("fc1", "mlp.0"),
    ("fc2", "mlp.2"),
    ("embed_tokens", "token_embedding"),
    ("encoder.embed_positions.weight", "encoder.positional_embedding"),
    ("decoder.embed_positions.weight", "decoder.positional_embedding"),
    ("encoder.layer_norm", "encoder.ln_post"),
    ("decoder.layer_norm", "decoder.ln"),
)


def load_checkpoint(directory: Path) -> Any:
    config = json.loads((directory / "config.json").read_text())
    generation = json.loads((directory / "generation_config.json").read_text())
    model = whisper.model.Whisper(
        whisper.model.ModelDimensions(
            n_mels=config["num_mel_bins"],
            n_audio_ctx=config["max_source_positions"],
            n_audio_state=config["d_model"],
            n_audio_head=config["encoder_attention_heads"],
            n_audio_layer=config["encoder_layers"],
            n_vocab=config["vocab_size"],
            n_text_ctx=config["max_target_positions"],
            n_text_state=config["d_model"],
            n_text_head=config["decoder_attention_heads"],
            n_text_layer=config["decoder_layers"],
        )
    )
    tensors = load_file(directory / "model.safetensors")
    named = {_rename(name): tensor.float() for name, tensor in tensors.items()}
    model.load_state_dict(
        {name: tensor for name, tensor in named.items() if not name.startswith("proj_out")}
    )
    heads = torch.zeros(model.dims.n_text_layer, model.dims.n_text_head, dtype=torch.bool)
    for layer, head in generation["alignment_heads"]:
        heads[layer, head] = True
    model.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
    return model.eval()


def _rename(name: str) -> str:
    for theirs, own in _NAMES:
        name = name.replace(theirs, own)
    return name
