"""Builds models of recurrent layers only: x += mixer(norm(x)) in each layer.

Their states have no positions, and config.json mostly has no limit for the length of a request.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig

# Tokens of a request. llama.cpp writes the same limit into GGUF files. Published models were
# trained on 2048 to 8192 tokens.
MAX_POSITIONS, USUAL_POSITIONS = 2**20, 8192


def build_state_model(config: HfConfig, b: Builder, norm: Norm, mixer: Part) -> LanguageModel:
    hidden_size, vocab_size = config.size("hidden_size"), config.size("vocab_size")
    num_layers, is_tied = config.size("num_hidden_layers"), config.flag("tie_word_embeddings")
    embedding = b.embedding("model.embeddings", vocab_size, hidden_size, is_head=is_tied)
    x = b.embed(embedding)
    for layer in range(num_layers):
        mixed = mixer(b, b.norm(x, f"model.layers.{layer}.norm", hidden_size, norm), layer)
        if layer == num_layers - 1:
            x, mixed = b.graph.sample_rows(x), b.graph.sample_rows(mixed)
        x = ops.add(x, mixed)
    x = b.norm(x, "model.norm_f", hidden_size, norm)
    head = embedding if is_tied else b.head("lm_head", vocab_size, hidden_size)
    positions = config.size("max_position_embeddings", MAX_POSITIONS)
    model = b.language_model(
        b.logits(x, head),
        hidden_size=hidden_size,
        vocab_size=vocab_size,
        max_positions=positions,
    )
    return replace(model, usual_positions=min(positions, USUAL_POSITIONS))
