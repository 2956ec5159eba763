"""Finds the family of a language model: a file here, named after the `model_type` of its
config.json.

Each file has `build(config, builder) -> LanguageModel`. A family that not every machine computes
has `check_machine(config)`, too. A new file is found by its name; no registration is needed.
"""

import importlib
from collections.abc import Callable

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.served_types import list_types
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_groups import describe_unsupported
from ouzel.errors import ModelLoadError

Build = Callable[[HfConfig, Builder], LanguageModel]


# Types that need an operation which the runtime lacks, so that no file here could build them.
_IMPOSSIBLE = {
    "kimi_linear": "its states decay by channel, and the runtime's delta net cannot do that",
    "deepseek_v32": "a learned indexer chooses the tokens of its attention",
    "glm_moe_dsa": "a learned indexer chooses the tokens of its attention",
    "qwen4_exp": "a learned indexer chooses the tokens of its attention",
}


def supported_model_types() -> list[str]:
    return list_types("models")


def family(model_type: str) -> Build:
    """Returns the function `build` of the family.

    Raises ModelLoadError for an unknown type; the message names the nearest types.
    """
    if model_type not in supported_model_types():
        served = list_types("models", "encoders", "vision")
        reason = _IMPOSSIBLE.get(model_type, "")
        raise ModelLoadError(describe_unsupported(model_type, "model_type", served, reason))
    build: Build = importlib.import_module(f"{__name__}.{model_type}").build
    return build


def check_machine(config: HfConfig) -> None:
    """Raises ModelLoadError if this machine lacks something that the family needs.

    The family must be a supported one.
    """
    module = importlib.import_module(f"{__name__}.{config.model_type}")
    if hasattr(module, "check_machine"):
        module.check_machine(config)
