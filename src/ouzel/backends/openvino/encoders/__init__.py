"""Finds the family of an encoder: a file here, named after the `model_type` with _ for -.

Each file has `build(config, weights, plan, num_labels) -> EncoderModel`. With labels the model
scores, else its hidden rows become vectors. A new file is found by its name, and its `model_type`
stands in checkpoint/model_groups.py (ENCODERS). `is_encoder` decides for a `model_type` that has
decoders too, such as gemma3_text.
"""

import importlib
from collections.abc import Callable

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.served_types import list_types
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.declared_task import is_encoder
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

Build = Callable[[HfConfig, Weights, WeightPlan, int], EncoderModel]


def encoder_model_types() -> list[str]:
    """Returns the names of the files."""
    return list_types("encoders")


def encoder_family(config: HfConfig) -> Build | None:
    """Returns the function `build` of the family, None if the model is not an encoder of these."""
    name = str(config.values.get("model_type")).replace("-", "_")
    if name not in encoder_model_types() or not is_encoder(config):
        return None
    build: Build = importlib.import_module(f"{__name__}.{name}").build
    return build


def is_decoder(config: HfConfig) -> bool:
    """Tells whether the model is a decoder of a known family, whose tokens read the earlier ones
    only.
    """
    return config.model_type in list_types("models") and encoder_family(config) is None
