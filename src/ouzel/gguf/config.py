"""Makes config.json from a GGUF file's metadata."""

import math
from collections.abc import Callable

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures import find_architecture
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import Gguf


def make_model_config(gguf: Gguf) -> JsonObject:
    """Returns the content of config.json.

    Raises ModelLoadError for an unknown architecture, and for metadata that would be ignored.
    """
    facts = Facts(gguf)
    architecture = find_architecture(facts.architecture, facts.source)
    check_direction(facts, makes_vectors=architecture.makes_vectors)
    own = architecture.config(facts)
    common = {} if architecture.has_own_keys else _common(facts, own)
    config = {"model_type": architecture.model_type} | common | own
    if architecture.prediction is not None and facts.num_layers < facts.num_blocks:
        config[architecture.prediction.count_key] = facts.num_blocks - facts.num_layers
    scaling = config.get("rope_scaling")
    if isinstance(scaling, dict) and scaling["rope_type"] == "yarn":
        scaling = config["rope_scaling"] = {**scaling, **architecture.yarn}
    if facts.has("rope.dimension_sections"):
        # frequencies for a token's time, row and column in a picture
        *sections, _ = facts.integers("rope.dimension_sections", 4)
        other = scaling if isinstance(scaling, dict) else {"rope_type": "default"}
        config["rope_scaling"] = {**other, "mrope_section": sections}
    facts.refuse_unread()
    return config


def check_direction(facts: Facts, *, makes_vectors: bool) -> None:
    """Raises ModelLoadError if tokens read later tokens in a decoder, or none in an encoder."""
    if facts.flag("attention.causal", not makes_vectors) is makes_vectors:
        raise ModelLoadError(
            f"{facts.source}: {facts.architecture}.attention.causal must be "
            f"{str(not makes_vectors).lower()}, found {str(makes_vectors).lower()}"
        )


def _common(facts: Facts, own: JsonObject) -> JsonObject:
    """Reads the keys that all models have, except the keys in `own`, which the architecture has
    read.
    """
    usual = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
    head_dim = usual if "head_dim" in own else _head_dim(facts, usual)
    readers: dict[str, Callable[[], object]] = {
        "vocab_size": lambda: facts.tensor_shape("token_embd.weight")[0],
        "hidden_size": lambda: facts.integer("embedding_length"),
        "intermediate_size": lambda: facts.integer("feed_forward_length"),
        "num_hidden_layers": lambda: facts.num_layers,
        "num_attention_heads": lambda: facts.integer("attention.head_count"),
        "num_key_value_heads": lambda: _num_kv_heads(facts),
        "head_dim": lambda: head_dim,
        "max_position_embeddings": lambda: facts.integer("context_length"),
        "rms_norm_eps": lambda: facts.number("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": lambda: not facts.has_tensor("output.weight"),
        "rope_theta": lambda: facts.number("rope.freq_base", 10000.0),
        "rope_scaling": lambda: _rope_scaling(
            facts, facts.integer("rope.dimension_count", head_dim)
        ),
        "partial_rotary_factor": lambda: _rotated_share(facts, head_dim),
    }
    values = {key: read() for key, read in readers.items() if key not in own}
    if values.get("partial_rotary_factor") is None:
        values.pop("partial_rotary_factor", None)
    return values


def _head_dim(facts: Facts, usual: int) -> int:
    head_dim = facts.integer("attention.key_length", usual)
    if (value_dim := facts.integer("attention.value_length", head_dim)) != head_dim:
        raise ModelLoadError(
            f"{facts.source}: attention.value_length must be {head_dim}, "
            f"the length of keys, found {value_dim}"
        )
    return head_dim


def _num_kv_heads(facts: Facts) -> int:
    """Returns the number of key heads of all attention layers; layers without attention have 0."""
    key = "attention.head_count_kv"
    if not facts.has(key):
        return facts.integer("attention.head_count")
    counts = set(facts.integers(key, facts.num_blocks)) - {0}
    if len(counts) != 1:
        raise ModelLoadError(
            f"{facts.source}: {key} must be the same for all layers, found {sorted(counts)}"
        )
    return counts.pop()


def _rotated_share(facts: Facts, head_dim: int) -> float | None:
    num_dims = facts.integer("rope.dimension_count", head_dim)
    return None if num_dims == head_dim or head_dim < 1 else num_dims / head_dim


def _rope_scaling(facts: Facts, num_dims: int) -> JsonObject | None:
    """Returns the `rope_scaling` of config.json.

    Frequencies with a divisor each (Llama 3.1) become a longrope whose short and long factors are
    the divisors.
    """
    context = facts.integer("context_length")
    original = facts.integer("rope.scaling.original_context_length", context)
    factor = facts.number("rope.scaling.factor", 1.0)
    kind = facts.text("rope.scaling.type", "linear" if factor != 1.0 else "none")
    if facts.has_tensor("rope_freqs.weight"):
        divisors = facts.floats("rope_freqs.weight")
        return _longrope(facts, (divisors, divisors), num_dims) | {
            "attention_factor": 1.0,
            "original_max_position_embeddings": context,
        }
    if facts.has_tensor("rope_factors_long.weight"):
        factors = (
            facts.floats("rope_factors_short.weight"),
            facts.floats("rope_factors_long.weight"),
        )
        return _longrope(facts, factors, num_dims) | {
            "attention_factor": facts.number("rope.scaling.attn_factor", 1.0),
            "original_max_position_embeddings": original,
        }
    match kind:
        case "none":
            return None
        case "linear":
            return {"rope_type": "linear", "factor": factor} if factor != 1.0 else None
        case "yarn":
            scaling: JsonObject = {
                "rope_type": "yarn",
                "factor": factor,
                "original_max_position_embeddings": original,
            }
            return scaling | _yarn_details(facts)
        case _:
            raise ModelLoadError(
                f"{facts.source}: rope.scaling.type {kind} is not supported; "
                "supported: none, linear, yarn"
            )


def _yarn_details(facts: Facts) -> JsonObject:
    details: JsonObject = {}
    if facts.has("rope.scaling.yarn_attn_factor"):
        details["attention_factor"] = facts.number("rope.scaling.yarn_attn_factor")
    for key in ("beta_fast", "beta_slow"):
        if facts.has(f"rope.scaling.yarn_{key}"):
            details[key] = facts.number(f"rope.scaling.yarn_{key}")
    if facts.has("rope.scaling.attn_factor"):
        # The factor multiplies YaRN's usual scale; transformers has the product as its factor.
        usual = 0.1 * math.log(max(facts.number("rope.scaling.factor", 1.0), 1.0)) + 1.0
        details["attention_factor"] = usual * facts.number("rope.scaling.attn_factor")
    return details


def _longrope(facts: Facts, factors: tuple[list[float], list[float]], num_dims: int) -> JsonObject:
    short, long = factors
    if len(short) != num_dims // 2 or len(long) != num_dims // 2:
        raise ModelLoadError(
            f"{facts.source}: there must be {num_dims // 2} rotary factors, found {len(short)}"
        )
    return {"rope_type": "longrope", "short_factor": short, "long_factor": long}
