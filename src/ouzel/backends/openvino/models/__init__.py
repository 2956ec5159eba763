"""Each model family has a file here, named after the `model_type` of its config.json.

Each has `build(config, builder) -> LanguageModel`. A new file is found by its name; nothing is
registered.
"""

import importlib
import pkgutil
from collections.abc import Callable
from difflib import get_close_matches

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

Build = Callable[[HfConfig, Builder], LanguageModel]


# What the runtime's operations cannot compute, so that no file here could.
_IMPOSSIBLE = {
    "gemma2": "its attention caps the scores, which the runtime's attention does not",
    "bloom": "its positions are linear biases of the scores (ALiBi), which are not built",
    "mpt": "its positions are linear biases of the scores (ALiBi), which are not built",
    "kimi_linear": "its states decay by channel, which the runtime's delta net does not",
    "deepseek_v32": "a learned indexer chooses what its attention sees",
    "glm_moe_dsa": "a learned indexer chooses what its attention sees",
    "qwen4_exp": "a learned indexer chooses what its attention sees",
}


def supported_model_types() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def family(model_type: str) -> Build:
    """Raises ModelLoadError where there is none; it names the nearest."""
    supported = supported_model_types()
    if model_type not in supported:
        nearest = get_close_matches(model_type, supported, n=3, cutoff=0.5)
        raise ModelLoadError(
            f"model_type {model_type} is not supported"
            + (f": {_IMPOSSIBLE[model_type]}" if model_type in _IMPOSSIBLE else "")
            + (f"; nearest: {', '.join(nearest)}" if nearest else "")
            + f"; supported: {', '.join(supported)}"
        )
    build: Build = importlib.import_module(f"{__name__}.{model_type}").build
    return build
