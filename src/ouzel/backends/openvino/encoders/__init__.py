"""Each family of encoders has a file here, named after the `model_type` of its config.json, with _
for -.

Each has `build(config, weights, plan, num_labels) -> EncoderModel`: with labels it scores, else its
vectors are made of its hidden rows. A new file is found by its name; nothing is registered.
"""

import importlib
import pkgutil
from collections.abc import Callable

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

Build = Callable[[HfConfig, Weights, WeightPlan, int], EncoderModel]


def encoder_model_types() -> list[str]:
    """Returns the names of the files."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def encoder_family(model_type: str) -> Build | None:
    """Returns None where the model is no encoder of these."""
    name = model_type.replace("-", "_")
    if name not in encoder_model_types():
        return None
    build: Build = importlib.import_module(f"{__name__}.{name}").build
    return build
