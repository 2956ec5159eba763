"""Finds the audio encoder of a model that hears sounds in its prompt: a file here, named after the
`model_type` of its config.json.

Each file has `build(config, builder) -> HearingModel`; `config` is all of config.json. A new file
is found by its name; no registration is needed.
"""

import importlib
from collections.abc import Callable

from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.served_types import list_types
from ouzel.backends.openvino.vision_model import HearingModel
from ouzel.checkpoint.hf_config import HfConfig

Build = Callable[[HfConfig, VisionBuilder], HearingModel]


def hearing_family(config: HfConfig) -> Build | None:
    """Returns the function `build` of the family, None if the checkpoint takes no sounds or Ouzel
    cannot build its encoder.
    """
    if not config.has("audio_config") or config.model_type not in list_types("hearing"):
        return None
    build: Build = importlib.import_module(f"{__name__}.{config.model_type}").build
    return build
