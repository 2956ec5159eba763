"""Describes architectures of encoders, which read whole texts.

XLM-RoBERTa and RoBERTa are `bert` in GGUF: their files have no rows for positions up to the padding
token's, so that positions count from 0 as in BERT. The head of their rerankers has the formula of
BERT's, and gets the names of BERT's.
"""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.dense import read_epsilon
from ouzel.gguf.architectures.kind import Architecture, Join
from ouzel.gguf.facts import Facts

_OUTER = {
    "token_embd": "embeddings.word_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "position_embd": "embeddings.position_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
    "cls": "pooler.dense",
    "cls.output": "classifier",
}
_ATTENTION = {
    "attn_q": "attention.self.query",
    "attn_k": "attention.self.key",
    "attn_v": "attention.self.value",
    "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm",
}
_RANKS = 4  # the pooling type of models that score pairs
_MEAN = 1
_POOLINGS = {_MEAN: "mean", 2: "cls"}


def _sizes(facts: Facts) -> JsonObject:
    _check_head_sizes(facts)
    return {
        "vocab_size": facts.tensor_shape("token_embd.weight")[0],
        "hidden_size": facts.integer("embedding_length"),
        "intermediate_size": facts.integer("feed_forward_length"),
        "num_hidden_layers": facts.num_blocks,
        "num_attention_heads": facts.integer("attention.head_count"),
        "max_position_embeddings": facts.integer("context_length"),
    }


def _common(facts: Facts) -> JsonObject:
    return _sizes(facts) | {
        "layer_norm_eps": facts.number("attention.layer_norm_epsilon"),
        "type_vocab_size": _num_token_types(facts),
    }


def _check_head_sizes(facts: Facts) -> None:
    size = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
    for key in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        if (found := facts.integer(key, size)) != size:
            raise ModelLoadError(
                f"{facts.source}: {facts.architecture}.{key} must be {size}, embedding_length by "
                f"attention.head_count, found {found}"
            )


def _num_token_types(facts: Facts) -> int:
    shape = facts.tensor_shape("token_types.weight")
    return shape[0] if len(shape) > 1 else 1


def _bert(facts: Facts) -> JsonObject:
    return _common(facts) | {"hidden_act": "gelu"} | _read_head(facts)


def _read_head(facts: Facts) -> JsonObject:
    """Returns the keys of a head that scores, if the file has one.

    llama.cpp's converter leaves BERT's dense layer out of rerankers, and its scores are others for
    it.
    """
    if not facts.has_tensor("cls.output.weight"):
        if facts.integer("pooling_type", 0) == _RANKS:
            raise ModelLoadError(
                f"{facts.source}: tensor cls.output.weight is missing, which pooling_type {_RANKS} "
                "(rank) requires"
            )
        return {}
    if not facts.has_tensor("cls.weight"):
        raise ModelLoadError(
            f"{facts.source}: tensor cls.weight is missing: its converter left out the dense layer "
            "before cls.output; serve the original checkpoint"
        )
    shape = facts.tensor_shape("cls.output.weight")
    num_labels = shape[0] if len(shape) > 1 else 1
    return {"architectures": ["BertForSequenceClassification"], "num_labels": num_labels}


def _nomic_bert(facts: Facts) -> JsonObject:
    return _common(facts) | {
        "hidden_act": "silu",
        "rope_theta": facts.number("rope.freq_base", 10000.0),
        "rope_scaling": None,
    }


def _jina_bert(facts: Facts) -> JsonObject:
    return _common(facts) | {
        "hidden_act": "gelu",
        "position_embedding_type": "alibi",
        "feed_forward_type": "geglu",
    }


def _modern_bert(facts: Facts) -> JsonObject:
    """Reads the layers, most of which have a window, and the head of a reranker."""
    interval = facts.integer("attention.sliding_window_pattern", 3)
    _refuse_scaling(facts)
    pooling = facts.integer("classifier.pooling_type", _MEAN)  # embedders have it, too
    head: JsonObject = {}
    if facts.has_tensor("cls.output.weight"):
        pooling_name = _read_pooling(facts, pooling)
        head = _read_head(facts) | {
            "architectures": ["ModernBertForSequenceClassification"],
            "classifier_pooling": pooling_name,
        }
    return (
        _sizes(facts)
        | {
            "norm_eps": read_epsilon(facts),
            "hidden_activation": facts.text("hidden_activation", "gelu"),
            "local_attention": facts.integer("attention.sliding_window"),
            "global_attn_every_n_layers": interval,
            "global_rope_theta": facts.number("rope.freq_base", 160_000.0),
            "local_rope_theta": facts.number("rope.freq_base_swa", 10_000.0),
        }
        | head
    )


def _eurobert(facts: Facts) -> JsonObject:
    _refuse_scaling(facts)
    num_heads = facts.integer("attention.head_count")
    return _sizes(facts) | {
        "num_key_value_heads": facts.integer("attention.head_count_kv", num_heads),
        "rms_norm_eps": facts.number("attention.layer_norm_rms_epsilon"),
        "rope_theta": facts.number("rope.freq_base", 10000.0),
        "hidden_act": "silu",
    }


def _read_pooling(facts: Facts, kind: int) -> str:
    if kind not in _POOLINGS:
        raise ModelLoadError(
            f"{facts.source}: {facts.architecture}.classifier.pooling_type must be 1 (mean) or "
            f"2 (cls), found {kind}"
        )
    return _POOLINGS[kind]


def _refuse_scaling(facts: Facts) -> None:
    if (kind := facts.text("rope.scaling.type", "none")) != "none":
        raise ModelLoadError(
            f"{facts.source}: {facts.architecture}.rope.scaling.type must be none, found {kind}"
        )


ENCODERS = {
    "bert": Architecture(
        model_type="bert",
        has_own_keys=True,
        makes_vectors=True,
        config=_bert,
        outer=_OUTER,
        prefix="encoder.layer.",
        layer=_ATTENTION
        | {
            "ffn_up": "intermediate.dense",
            "ffn_down": "output.dense",
            "layer_output_norm": "output.LayerNorm",
        },
    ),
    "nomic-bert": Architecture(
        model_type="nomic_bert",
        has_own_keys=True,
        makes_vectors=True,
        config=_nomic_bert,
        outer=_OUTER | {"token_embd_norm": "emb_ln"},
        prefix="encoder.layers.",
        layer={
            "attn_qkv": "attn.Wqkv",
            "attn_output": "attn.out_proj",
            "attn_output_norm": "norm1",
            "ffn_up": "mlp.fc11",
            "ffn_gate": "mlp.fc12",
            "ffn_down": "mlp.fc2",
            "layer_output_norm": "norm2",
        },
    ),
    "modern-bert": Architecture(
        model_type="modernbert",
        has_own_keys=True,
        makes_vectors=True,
        config=_modern_bert,
        outer={
            "token_embd": "embeddings.tok_embeddings",
            "token_embd_norm": "embeddings.norm",
            "output_norm": "final_norm",
            "cls": "head.dense",
            "cls.norm": "head.norm",
            "cls.output": "classifier",
        },
        prefix="layers.",
        layer={
            "attn_norm": "attn_norm",
            "attn_qkv": "attn.Wqkv",
            "attn_output": "attn.Wo",
            "ffn_norm": "mlp_norm",
            "ffn_up": "mlp.Wi",
            "ffn_down": "mlp.Wo",
        },
    ),
    "eurobert": Architecture(
        model_type="eurobert",
        has_own_keys=True,
        makes_vectors=True,
        config=_eurobert,
        outer={"token_embd": "embed_tokens", "output_norm": "norm"},
        prefix="layers.",
    ),
    "jina-bert-v2": Architecture(
        model_type="bert",
        has_own_keys=True,
        makes_vectors=True,
        config=_jina_bert,
        outer=_OUTER,
        prefix="encoder.layer.",
        # Newer files have gate and up in one tensor, older files in two.
        layer=_ATTENTION
        | {
            "ffn_up": "mlp.gated_layers",
            "ffn_down": "mlp.wo",
            "layer_output_norm": "mlp.layernorm",
        },
        joins={"ffn_gate": Join(below="ffn_up", name="mlp.gated_layers")},
    ),
}
