"""Tells EAGLE-3 heads from models.

A head is a small checkpoint that drafts tokens from rows of a model's layers.

Heads are published in two forms of config.json: with the keys of a Llama and `draft_vocab_size`, as
EAGLE, SpecForge, SGLang, ModelOpt and vLLM write them, and as `speculators` writes them, with the
keys of the layer in `transformer_layer_config`.
"""

from pathlib import Path

from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import CONFIG_FILE, JsonObject, read_config_json
from ouzel.errors import ModelLoadError

DRAFT_CONFIG = f"draft_model: {CONFIG_FILE}"  # the config.json of a draft, as errors name it
_MARK = "eagle3"  # part of the names of all classes of such heads, in any case
_OLDEST_CLASS = "LlamaForCausalLM"  # the class of EAGLE's own heads
_KIND = "speculators_model_type"
_LAYER = "transformer_layer_config"  # a key of speculators
_IR_MARK = "openvino_model.xml"


def is_draft_head(directory: Path) -> bool:
    """Tells whether the directory has an EAGLE-3 head as safetensors or as files of torch.

    An OpenVINO IR of a head counts as no head. Raises ModelLoadError for a broken config.json, and
    for a head of another kind of speculators.
    """
    if (directory / _IR_MARK).is_file() or not (directory / CONFIG_FILE).is_file():
        return False
    return _describes_head(read_config_json(directory))


def is_ir_of_draft_head(directory: Path) -> bool:
    """Tells whether the directory has an EAGLE-3 head as OpenVINO IR."""
    if not (directory / _IR_MARK).is_file() or not (directory / CONFIG_FILE).is_file():
        return False
    try:
        return _describes_head(read_config_json(directory))
    except ModelLoadError:
        return False  # the load of the directory reports the error


def refuse_ir_of_draft_head(directory: Path) -> None:
    """Raises ModelLoadError if a draft is an EAGLE-3 head as OpenVINO IR."""
    if is_ir_of_draft_head(directory):
        raise ModelLoadError(
            f"draft_model: {directory} is an EAGLE-3 head as OpenVINO IR, which cannot be "
            "read; name the directory of the original head, with safetensors"
        )


def read_draft_head_config(directory: Path) -> HfConfig:
    """Reads the config.json of a head, with all keys on one level. Raises ModelLoadError."""
    config = HfConfig(read_config_json(directory), DRAFT_CONFIG)
    layer = config.section(_LAYER)
    if layer is None:
        return config
    own = {key: value for key, value in config.values.items() if key != _LAYER}
    # the default of speculators; heads of other programs have false
    return HfConfig({"norm_before_residual": True} | layer.values | own, DRAFT_CONFIG)


def _describes_head(values: JsonObject) -> bool:
    if (kind := values.get(_KIND)) is not None:
        if kind != _MARK:
            raise HfConfig(values, DRAFT_CONFIG).refuse_value(_KIND, _MARK, kind)
        return True
    names = values.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise HfConfig(values, DRAFT_CONFIG).refuse_value("architectures", "a list of names", names)
    return any(_MARK in name.lower() for name in names) or (
        "draft_vocab_size" in values and names == [_OLDEST_CLASS]
    )
