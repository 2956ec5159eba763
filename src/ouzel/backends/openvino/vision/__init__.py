"""Each family that sees has a file here for its vision encoder, named after the `model_type` of its
config.json.

Each has `SHAPE`, what its language model takes of images, or `image_shape(config)`, and
`build(config, builder) -> VisionModel`; `config` is all of config.json. A new file is found by its
name; nothing is registered.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig


@dataclass(frozen=True, slots=True)
class VisionFamily:
    image_shape: Callable[[HfConfig], ImageShape]
    build: Callable[[HfConfig, VisionBuilder], VisionModel]


def vision_model_types() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def vision_family(config: HfConfig) -> VisionFamily | None:
    """Returns None for a checkpoint that does not see, and for one whose encoder is not built here."""
    if not config.has("vision_config") or config.model_type not in vision_model_types():
        return None
    module = importlib.import_module(f"{__name__}.{config.model_type}")
    return VisionFamily(module.image_shape, module.build)
