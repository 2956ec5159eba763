"""Finds the vision encoder of a family: a file here, named after the `model_type` of its
config.json.

Each file has `image_shape(config)`, the images that the language model takes, and `build(config,
builder) -> VisionModel`; `config` is all of config.json. A new file is found by its name; no
registration is needed.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.served_types import list_types
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig


@dataclass(frozen=True, slots=True)
class VisionFamily:
    image_shape: Callable[[HfConfig], ImageShape]
    build: Callable[[HfConfig, VisionBuilder], VisionModel]


def vision_model_types() -> list[str]:
    return list_types("vision")


def vision_family(config: HfConfig) -> VisionFamily | None:
    """Returns the family, None if the checkpoint takes no images or Ouzel cannot build its
    encoder.
    """
    if not config.has("vision_config") or config.model_type not in vision_model_types():
        return None
    module = importlib.import_module(f"{__name__}.{config.model_type}")
    return VisionFamily(module.image_shape, module.build)
