"""Checks that the file of an adapter has the parts that its configuration names, and no others."""

from pathlib import Path

from ouzel.backends.openvino.adapters.adapter_config import AdapterConfig, is_named_by
from ouzel.backends.openvino.adapters.adapter_tensors import AdapterTensors
from ouzel.backends.openvino.graph.adapter_shape import HEAD
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.checkpoint.model_files import brief
from ouzel.checkpoint.weight_files import ADAPTER_CONFIG
from ouzel.errors import ModelLoadError


def check_completeness(
    directory: Path, config: AdapterConfig, tensors: AdapterTensors, tied_embedding: str
) -> None:
    """Raises ModelLoadError if the configuration names parts that have no tensors, or the reverse.

    `tied_embedding` is the name of the embedding if it is the head, too. The key `bias` is not
    compared: models without biases have no tensors for it, and every bias in the file is used.
    """
    path = directory / ADAPTER_CONFIG
    kinds = {kind for kinds in tensors.modules.values() for kind in kinds}
    for key, is_set, own in (
        ("use_dora", config.use_dora, "magnitude"),
        ("lora_bias", config.lora_bias, "b_bias"),
        ("modules_to_save", bool(config.modules_to_save), "weight"),
        ("trainable_token_indices", bool(config.trainable_token_indices), "tokens"),
    ):
        if is_set != (own in kinds):
            holds = "no tensors of this part" if is_set else "tensors of this part"
            raise ModelLoadError(
                f"{path}: {key} does not agree with {tensors.path.name}, which has {holds}"
            )
    if isinstance(config.trainable_token_indices, dict):
        for module in config.trainable_token_indices:
            if not _has_tokens(module, config, tensors, tied_embedding):
                raise ModelLoadError(
                    f"{path}: trainable_token_indices names {brief(module)}, but "
                    f"{tensors.path.name} has no trained tokens of it"
                )


def _has_tokens(
    module: str, config: AdapterConfig, tensors: AdapterTensors, tied_embedding: str
) -> bool:
    """Tells whether the file has the trained tokens of a module.

    PEFT leaves out the head's tokens if they are the same tokens of a tied embedding.
    """
    with_tokens = {
        name: stored
        for name, stored in tensors.stored_names.items()
        if "tokens" in tensors.modules[name]
    }
    if any(is_named_by(module, stored) for stored in with_tokens.values()):
        return True
    if plain_name(module + ".") != HEAD + "." or tied_embedding not in with_tokens:
        return False
    return config.token_indices(module) == config.token_indices(with_tokens[tied_embedding])
