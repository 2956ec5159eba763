"""Names the tensors of a checkpoint as most checkpoints of one language model do."""

# Prefixes of the language model in checkpoints of several modes, in Nemotron-H, GPT-2 and its
# contemporaries (also saved without their heads), and the prefix that it has in other checkpoints
# of its own. Encoders have several spellings: transformers 4 and 5 differ.
_PLAIN_NAMES = {
    "backbone.": "model.",
    "transformer.h.": "model.layers.",
    "transformer.wte.": "model.embed_tokens.",
    "transformer.wpe.": "model.embed_positions.",
    "transformer.ln_f.": "model.norm.",
    "transformer.word_embeddings.": "model.embed_tokens.",
    "transformer.word_embeddings_layernorm.": "model.word_embeddings_layernorm.",
    "transformer.blocks.": "model.layers.",
    "transformer.norm_f.": "model.norm_f.",
    "gpt_neox.embed_in.": "model.embed_tokens.",
    "gpt_neox.": "model.",
    "embed_in.": "embed_tokens.",
    "embed_out.": "lm_head.",
    "model.decoder.": "model.",
    "h.": "layers.",
    "blocks.": "layers.",
    "word_embeddings.": "embed_tokens.",
    "wte.": "embed_tokens.",
    "wpe.": "embed_positions.",
    "ln_f.": "norm.",
    "model.language_model.": "model.",
    "model.text_model.": "model.",
    "language_model.model.": "model.",
    "language_model.lm_head.": "lm_head.",
    "model.visual.vision_model.": "vision_tower.",
    "visual.vision_model.": "vision_tower.",
    "model.visual.": "visual.",
    "model.vision_tower.vision_model.": "vision_tower.",
    "model.vision_tower.": "vision_tower.",
    "vision_tower.vision_model.": "vision_tower.",
    "model.vision_model.": "vision_tower.",
    "model.multi_modal_projector.": "multi_modal_projector.",
    "model.connector.": "multi_modal_projector.",
    "model.projector.": "multi_modal_projector.",
    "mlp_AR.": "multi_modal_projector.",
    "model.merger.": "merger.",
    "thinker.model.": "model.",
    "thinker.lm_head.": "lm_head.",
    "thinker.audio_tower.proj1.": "multi_modal_projector.linear_1.",
    "thinker.audio_tower.proj2.": "multi_modal_projector.linear_2.",
    "thinker.": "",
    "model.audio_tower.": "audio_tower.",
    "llm.model.": "model.",
    "llm.lm_head.": "lm_head.",
    "vpm.": "vision_tower.",
    "model.embed_vision.": "embed_vision.",
    "model.embed_audio.": "embed_audio.",
    "model.image_newline": "image_newline",
    "model.layerwise_projectors.": "layerwise_projectors.",
    "model.spatial_projectors.": "spatial_projectors.",
    "language_model.image_newline": "image_newline",
}


def plain_name(name: str) -> str:
    """Returns the name that a tensor has in a checkpoint of the language model alone."""
    for there, alone in _PLAIN_NAMES.items():
        if name.startswith(there):
            return alone + name.removeprefix(there)
    return name
