"""Reads config.json of a Hugging Face checkpoint with types and limits.

Every error names the key. The limits are several times the values of published models. Numbers
decide how much is counted, built or reserved, so an absurd one must be refused before it takes all
time and memory.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ouzel.checkpoint.model_files import (
    CONFIG_FILE,
    MAX_VOCAB_SIZE,
    JsonObject,
    brief,
    read_config_json,
    read_generation_values,
)
from ouzel.errors import ModelLoadError

MAX_SIZE = 2**31 - 1
MAX_NUMBER = 1e30
MAX_SIZES = {
    "vocab_size": MAX_VOCAB_SIZE,
    "num_hidden_layers": 1024,
    "num_attention_heads": 2**12,
    "num_key_value_heads": 2**12,
    "head_dim": 2**13,
    "hidden_size": 2**18,
    "intermediate_size": 2**20,
    "vocab_size_per_layer_input": MAX_VOCAB_SIZE,
    **dict.fromkeys(
        ("max_position_embeddings", "original_max_position_embeddings", "sliding_window"), MAX_SIZE
    ),
}
MAX_OTHER_SIZE = 2**20
# Keys of a model_type that transformers writes for most families under another name.
_OWN_NAMES = {
    "gpt2": {
        "n_positions": "max_position_embeddings",
        "n_embd": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_inner": "intermediate_size",
        "activation_function": "hidden_act",
        "layer_norm_epsilon": "layer_norm_eps",
    },
    "bloom": {
        "n_embed": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "layer_norm_epsilon": "layer_norm_eps",
        "seq_length": "max_position_embeddings",
    },
    "mpt": {
        "d_model": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "layer_norm_epsilon": "layer_norm_eps",
        "max_seq_len": "max_position_embeddings",
    },
    "opt": {"ffn_dim": "intermediate_size", "activation_function": "hidden_act"},
    "gpt_neox": {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"},
}
# Keys of a model_type in generation_config.json that its graph depends on.
_GENERATION_KEYS = {"whisper": ("alignment_heads",)}
# Older checkpoints of these types have the keys of the language model beside vision_config.
_FLAT = ("paddleocr_vl", "qwen2_vl", "qwen2_5_vl")
# `version` of MiniCPM-V -> the type of its language model, whose keys stand beside vision_config
_MINICPMV_TEXTS = {"2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}
# Keys that may stand outside of text_config.
_SHARED_WITH_TEXT = (
    "tie_word_embeddings",
    "tie_embedding",  # LFM2's name
    "quantization_config",
    "compression_config",
    "dtype",
    "torch_dtype",
)


class HfConfig:
    """Reads one JSON object of the file; `section` reads the nested objects.

    Errors begin with `source`, the name of the file for users.
    """

    # Any: JSON values, which the getters check
    def __init__(self, values: dict[str, Any], source: str = CONFIG_FILE) -> None:
        self.values = values
        self.source = source

    @property
    def model_type(self) -> str:
        return self.text("model_type")

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.refuse_value(key, "an integer", value)
        return value

    def size(self, key: str, default: int | None = None) -> int:
        """Reads an integer from 1 to the limit of the key in MAX_SIZES."""
        value = self.integer(key, default)
        if value < 1:
            raise self.refuse_value(key, "a positive integer", value)
        if value > (largest := MAX_SIZES.get(key, MAX_OTHER_SIZE)):
            raise self.refuse_value(key, f"<= {largest}", value)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not -MAX_NUMBER <= value <= MAX_NUMBER
        ):
            raise self.refuse_value(key, "a number", value)  # NaN and infinity included
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.refuse_value(key, "true or false", value)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.refuse_value(key, "a string", value)
        return value

    def choice(self, key: str, *supported: str) -> str:
        """Reads one of the supported texts; the first one is the default."""
        value = self.text(key, supported[0])
        if value not in supported:
            found = brief(value).strip('"')
            raise ModelLoadError(
                f"{self.source}: {key} must be {' or '.join(supported)}, found {found}"
            )
        return value

    def texts(self, key: str, length: int) -> list[str]:
        value = self.values.get(key)
        if (
            not isinstance(value, list)
            or len(value) != length
            or not all(isinstance(item, str) for item in value)
        ):
            raise self.refuse_value(key, f"a list of {length} strings", value)
        return value

    def integers(self, key: str, length: int | None = None) -> list[int]:
        """Reads a list of integers, of `length` entries unless that is None."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise self.refuse_value(key, "a list of integers", value)
        if length is not None and len(value) != length:
            raise self.refuse_value(key, f"a list of {length} integers", value)
        return value

    def numbers(self, key: str, length: int) -> list[float]:
        value = self.values.get(key)
        if not isinstance(value, list) or len(value) != length:
            raise self.refuse_value(key, f"a list of {length} numbers", value)
        return [HfConfig({key: item}, self.source).number(key) for item in value]

    def section(self, key: str) -> "HfConfig | None":
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.refuse_value(key, "an object", value)
        return HfConfig(value, f"{self.source}: {key}")

    def required_section(self, key: str) -> "HfConfig":
        section = self.section(key)
        if section is None:
            raise ModelLoadError(f"{self.source}: {key} is missing")
        return section

    def with_defaults(self, **defaults: object) -> "HfConfig":
        """Returns a copy with values for missing keys; a key that is null stays null."""
        return HfConfig(defaults | self.values, self.source)

    def text_model(self) -> "HfConfig":
        """Returns the config of the language model of a checkpoint that reads images or audio too.

        Keys outside of `text_config` count first, as in transformers. Another checkpoint is its own
        language model.
        """
        text = self.section("text_config")
        if text is None:
            if self.values.get("model_type") == "minicpmv":
                return self.with_values(model_type=self._minicpmv_text())
            if self.values.get("model_type") in _FLAT:
                return self.with_values(model_type=f"{self.model_type}_text")
            return self
        shared = {key: self.values[key] for key in _SHARED_WITH_TEXT if key in self.values}
        return HfConfig(text.values | shared, f"{self.source}: text_config")

    def _minicpmv_text(self) -> str:
        version = self.values.get("version")
        if isinstance(version, int | float):
            version = f"{self.number('version'):.1f}"
        if not isinstance(version, str) or version not in _MINICPMV_TEXTS:
            raise self.refuse("version", ", ".join(_MINICPMV_TEXTS))
        return _MINICPMV_TEXTS[version]

    def with_values(self, **values: object) -> "HfConfig":
        return HfConfig(self.values | values, self.source)

    def has(self, key: str) -> bool:
        """Tells whether the key is present and not null: transformers writes null for "off"."""
        return self.values.get(key) is not None

    def refuse(self, key: str, supported: str) -> ModelLoadError:
        """Returns an error that names the key, its value and the supported values."""
        value = brief(self.values.get(key))
        return ModelLoadError(
            f"{self.source}: {key} {value} is not supported; supported: {supported}"
        )

    def refuse_value(self, key: str, expected: str, value: object) -> ModelLoadError:
        """Returns an error that names the key, the expected values and the value that was found."""
        return ModelLoadError(f"{self.source}: {key} must be {expected}, found {brief(value)}")

    def require(self, **supported: object) -> None:
        """Raises ModelLoadError for a key with another value than the supported one.

        Null and a missing key count as the supported value.
        """
        for key, value in supported.items():
            if self.has(key) and self.values[key] != value:
                raise self.refuse(key, f"only {brief(value)}")

    def refuse_others(self, known: Collection[str]) -> None:
        """Raises ModelLoadError for any other key, unless it is off: null, false or empty."""
        for key, value in self.values.items():
            if key not in known and value not in (None, False, "", [], {}):
                raise ModelLoadError(
                    f"{self.source}: {brief(key)} is not supported, found {brief(value)}"
                )

    def _get(self, key: str, default: object) -> object:
        value = self.values.get(key)
        if value is not None:
            return value
        if default is None:
            raise ModelLoadError(f"{self.source}: {key} is missing")
        return default


def read_hf_config(directory: Path, source: str = CONFIG_FILE) -> HfConfig:
    if not (directory / CONFIG_FILE).is_file():
        raise ModelLoadError(
            f"{directory} has no config.json: it is not a Hugging Face model directory"
        )
    values = use_common_names(read_config_json(directory))
    keys = _GENERATION_KEYS.get(str(values.get("model_type")), ())
    return HfConfig(read_generation_values(directory, keys) | values, source)


def use_common_names(values: JsonObject) -> JsonObject:
    """Renames keys of config.json to the names that most families have.

    If both names are there, the common one counts.
    """
    names = _OWN_NAMES.get(str(values.get("model_type")), {})
    return {names.get(key, key): value for key, value in values.items()} | {
        key: value for key, value in values.items() if key in names.values()
    }
