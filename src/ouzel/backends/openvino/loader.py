"""A model directory -> a graph: what the directory holds decides how."""

import logging
from pathlib import Path

from ouzel.backends.openvino.cache import CheckpointWeights, MemoryWriter
from ouzel.backends.openvino.decoder import LanguageModel
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.quantize import Encoding
from ouzel.backends.openvino.weights import Checkpoint
from ouzel.errors import ModelLoadError

logger = logging.getLogger(__name__)


def load_checkpoint(directory: Path, config: HfConfig, encoding: Encoding) -> LanguageModel:
    build = family(config.model_type)
    if config.has("quantization_config"):
        method = (config.section("quantization_config") or config).text("quant_method", "unknown")
        raise ModelLoadError(
            f"config.json: quantization_config {method} is not supported; give the unquantised checkpoint, "
            "which is compressed while loading (--weights int8 or int4)"
        )
    return build(config, CheckpointWeights(Checkpoint(directory), MemoryWriter()), encoding)
