"""Reads `adapter_config.json`, and refuses by name everything that Ouzel does not support."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.backends.name_patterns import names_by_pattern
from ouzel.checkpoint.model_files import brief, read_json_object
from ouzel.checkpoint.weight_files import ADAPTER_CONFIG
from ouzel.errors import ModelLoadError

# initialisations that change the base weights
_CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
_BIASES = ("none", "all", "lora_only")
_REFUSED = {
    "use_qalora": "QALoRA is not supported",
    "target_parameters": "experts' parameters cannot be adapted",
    "layer_replication": "replicated layers are not supported",
    "alora_invocation_tokens": "adapters that begin within a prompt (aLoRA) are not supported",
    "arrow_config": "Arrow routing is not supported",
    "use_bdlora": "block-diagonal adapters are not supported",
    "kasa_config": "KaSA is not supported",
    "monteclora_config": "MonteCLoRA is not supported",
    "velora_config": "VeLoRA is not supported",
}

_LARGEST_ALPHA = 2.0**127  # float32 holds it

Rank = Annotated[int, Meta(ge=1, le=2**16)]
TokenIndices = list[Annotated[int, Meta(ge=0, lt=2**31)]]


class AdapterConfig(msgspec.Struct, frozen=True):
    """The keys of the configuration that change the reading of the tensors.

    Other keys, such as `target_modules` and `layers_to_transform`, only choose the tensors.
    """

    peft_type: str = "LORA"
    r: Rank = 8
    lora_alpha: float = 8
    use_rslora: bool = False
    use_dora: bool = False
    lora_bias: bool = False
    bias: str = "none"
    modules_to_save: list[str] | None = None
    rank_pattern: dict[str, Rank] | None = None
    alpha_pattern: dict[str, float] | None = None
    init_lora_weights: bool | str | None = True
    # tokens of `trainable_tokens_delta`: of the embedding, or by the name of the module
    trainable_token_indices: TokenIndices | dict[str, TokenIndices] | None = None

    @property
    def max_rank(self) -> int:
        return max([self.r, *(self.rank_pattern or {}).values()])

    def token_indices(self, module: str) -> TokenIndices:
        """Returns the tokens whose rows of the module are replaced."""
        indices = self.trainable_token_indices
        if not isinstance(indices, dict):
            return indices or []
        return next((own for name, own in indices.items() if is_named_by(name, module)), [])


def is_named_by(name: str, module: str) -> bool:
    """Tells whether a name of the configuration is the module's name, or the end of it."""
    return module == name or module.endswith("." + name)


def read_config(directory: Path) -> AdapterConfig:
    """Reads the configuration. Raises ModelLoadError if it is broken or not supported."""
    path = directory / ADAPTER_CONFIG
    if not path.is_file():
        raise ModelLoadError(f"{directory} is not a PEFT adapter: it has no {ADAPTER_CONFIG}")
    content = read_json_object(path)
    try:
        config = msgspec.convert(content, AdapterConfig)
    except msgspec.ValidationError as error:
        raise ModelLoadError(f"{path}: {error}") from error
    if config.peft_type != "LORA":
        raise ModelLoadError(f"{path}: peft_type must be LORA, given {brief(config.peft_type)}")
    if config.bias not in _BIASES:
        raise ModelLoadError(
            f"{path}: bias must be one of {', '.join(_BIASES)}, given {brief(config.bias)}"
        )
    alphas = {"lora_alpha": config.lora_alpha} | {
        f"alpha_pattern: {pattern}": alpha
        for pattern, alpha in (config.alpha_pattern or {}).items()
    }
    for key, alpha in alphas.items():
        if not abs(alpha) <= _LARGEST_ALPHA:  # NaN fails, too
            raise ModelLoadError(
                f"{path}: {brief(key)[1:-1]} must be finite and at most 2^127, given {alpha:g}"
            )
    for key, why in _REFUSED.items():
        if content.get(key):
            raise ModelLoadError(f"{path}: {key}: {why}")
    if isinstance(config.init_lora_weights, str) and config.init_lora_weights.lower().startswith(
        _CHANGES_BASE
    ):
        raise ModelLoadError(
            f"{path}: init_lora_weights {brief(config.init_lora_weights)} has changed the base "
            "weights: save the adapter in the usual form "
            "(path_initial_model_for_weight_conversion)"
        )
    return config


def values_by_pattern(
    patterns: Mapping[str, float], key: str, stored_names: Mapping[str, str]
) -> dict[str, float]:
    """Returns the value of each module that a pattern matches; the first match counts.

    A pattern matches the end of a module's stored name, after a dot or as a whole.
    """
    by_regex = {rf"(.*\.)?({pattern})$": value for pattern, value in patterns.items()}
    found = names_by_pattern(by_regex, list(stored_names.values()), f"{ADAPTER_CONFIG}: {key}")
    values: dict[str, float] = {}
    for name, module in stored_names.items():
        own = [value for regex, value in by_regex.items() if module in found[regex]]
        if own:
            values[name] = own[0]
    return values
