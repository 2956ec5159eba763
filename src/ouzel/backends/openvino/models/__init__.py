"""Finds the family of a language model: a file here, named after the `model_type` of its
config.json.

Each file has `build(config, builder) -> LanguageModel`. A new file is found by its name; no
registration is needed.
"""

import importlib
import pkgutil
from collections.abc import Callable

from ouzel.backends.openvino.encoders import encoder_model_types
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.vision import vision_model_types
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_groups import describe_unsupported
from ouzel.errors import ModelLoadError

Build = Callable[[HfConfig, Builder], LanguageModel]


# Types that need an operation which the runtime lacks, so that no file here could build them.
_IMPOSSIBLE = {
    "gemma2": "its attention caps the scores, and the runtime's attention cannot do that",
    "bloom": "its positions are linear biases of the scores (ALiBi), which are not supported",
    "mpt": "its positions are linear biases of the scores (ALiBi), which are not supported",
    "kimi_linear": "its states decay by channel, and the runtime's delta net cannot do that",
    "deepseek_v32": "a learned indexer chooses the tokens of its attention",
    "glm_moe_dsa": "a learned indexer chooses the tokens of its attention",
    "qwen4_exp": "a learned indexer chooses the tokens of its attention",
}


def supported_model_types() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def family(model_type: str) -> Build:
    """Returns the function `build` of the family.

    Raises ModelLoadError for an unknown type; the message names the nearest types.
    """
    supported = supported_model_types()
    if model_type not in supported:
        served = [*supported, *encoder_model_types(), *vision_model_types()]
        reason = _IMPOSSIBLE.get(model_type, "")
        raise ModelLoadError(describe_unsupported(model_type, "model_type", served, reason))
    build: Build = importlib.import_module(f"{__name__}.{model_type}").build
    return build
