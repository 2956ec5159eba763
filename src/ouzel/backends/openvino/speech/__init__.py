"""Finds the audio encoder of a speech model: a file here, named after the `model_type` of its
config.json.

Each file has `build(config, builder) -> AudioEncoderModel`. A new file is found by its name; no
registration is needed.
"""

import importlib
from collections.abc import Callable

from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.served_types import list_types
from ouzel.backends.openvino.speech_model import AudioEncoderModel
from ouzel.checkpoint.hf_config import HfConfig

Build = Callable[[HfConfig, VisionBuilder], AudioEncoderModel]


def speech_family(config: HfConfig) -> Build | None:
    """Returns the function `build` of the family, None if the model reads no sound."""
    if config.model_type not in list_types("speech"):
        return None
    build: Build = importlib.import_module(f"{__name__}.{config.model_type}").build
    return build
