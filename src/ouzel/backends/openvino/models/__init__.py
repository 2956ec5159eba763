"""Each model family has a file here, named after the `model_type` of its config.json.

Each has `build(config, builder) -> LanguageModel`. A new file is found by its name; nothing is registered.
"""

import importlib
import pkgutil
from collections.abc import Callable

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.errors import ModelLoadError

Build = Callable[[HfConfig, Builder], LanguageModel]


def supported_model_types() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def family(model_type: str) -> Build:
    supported = supported_model_types()
    if model_type not in supported:
        raise ModelLoadError(f"model_type {model_type} is not supported; supported: {', '.join(supported)}")
    build: Build = importlib.import_module(f"{__name__}.{model_type}").build
    return build
