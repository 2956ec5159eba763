"""Reads from config.json how much context a model has, and how much of a KV cache it takes.

The OpenVINO backend and the check of `--max-model-len` both use these functions, so that an option
is refused at once by the same limit that the engine would find after it has loaded the model.
"""

from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

# In models of these types every layer caches keys and values of every head. Other models have
# layers of several kinds, or share cached rows between layers.
_TYPES_WITH_EQUAL_LAYERS = frozenset({"llama", "mistral", "qwen2", "qwen3", "smollm3"})
_MAX_IMPLIED_HEAD_DIM = 128  # the head_dim of Qwen3 models whose config.json leaves it out


def rope_section(config: HfConfig) -> HfConfig:
    """Returns the section about rotary positions: `rope_parameters`, or the older `rope_scaling`.

    Raises ModelLoadError if both are present, as after an edit of config.json, and differ.
    """
    newer, older = config.section("rope_parameters"), config.section("rope_scaling")
    if newer is None or older is None:
        return newer or older or HfConfig({})
    if any(newer.values.get(key) != value for key, value in older.values.items() if key != "type"):
        raise ModelLoadError(
            "config.json: rope_parameters and rope_scaling differ; only one of them may be there"
        )
    return newer


def rope_type(scaling: HfConfig) -> str:
    """Returns the type of rotary positions; `type` is the older name of the key."""
    return scaling.text("rope_type", scaling.text("type", "default"))


def original_positions(config: HfConfig) -> int:
    """Returns the context with which the model was trained before its positions were scaled."""
    scaling = rope_section(config)
    original = scaling.size(
        "original_max_position_embeddings", config.size("max_position_embeddings")
    )
    # Phi-3 writes the key beside the section, and there it counts first.
    return config.size("original_max_position_embeddings", original)


def read_max_positions(config: HfConfig) -> int:
    """Returns the longest context of the model in tokens; YaRN scales it by a factor."""
    positions = config.size("max_position_embeddings")
    if config.values.get("model_type") == "cohere":  # Command R: 8192, and 131072 in the other key
        positions = max(positions, config.size("model_max_length", positions))
    scaling = rope_section(config)
    if rope_type(scaling) != "yarn":
        return positions
    original = original_positions(config)
    return max(positions, int(original * scaling.number("factor", positions / original)))


def read_cached_values(config: HfConfig) -> int | None:
    """Returns how many numbers, keys and values together, one token adds to the KV cache.

    Returns None for models whose layers are not known to be equal: their engine knows.
    """
    if config.values.get("model_type") not in _TYPES_WITH_EQUAL_LAYERS:
        return None
    num_heads = config.size("num_attention_heads")
    implied_head_dim = max(1, config.size("hidden_size") // num_heads)
    head_dim = config.size("head_dim", min(implied_head_dim, _MAX_IMPLIED_HEAD_DIM))
    num_kv_heads = config.size("num_key_value_heads", num_heads)
    return 2 * config.size("num_hidden_layers") * num_kv_heads * head_dim
