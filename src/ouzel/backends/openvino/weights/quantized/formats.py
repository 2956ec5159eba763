"""Finds the format of a quantised checkpoint in config.json."""

from collections.abc import Callable

from ouzel.backends.openvino.weights.quantized.awq import Awq
from ouzel.backends.openvino.weights.quantized.bitsandbytes import BitsAndBytes
from ouzel.backends.openvino.weights.quantized.compressed_tensors import CompressedTensors
from ouzel.backends.openvino.weights.quantized.float8 import Float8
from ouzel.backends.openvino.weights.quantized.gptq import Gptq
from ouzel.backends.openvino.weights.quantized.mxfp4 import Mxfp4
from ouzel.backends.openvino.weights.quantized.stored import Format
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.checkpoint.hf_config import HfConfig

FORMATS: dict[str, Callable[[HfConfig, Checkpoint], Format]] = {
    "awq": Awq,
    "bitsandbytes": BitsAndBytes,
    "compressed-tensors": CompressedTensors,
    "fp8": Float8,
    "gptq": Gptq,
    "mxfp4": Mxfp4,
}
# compressed-tensors once wrote the second key
_KEYS = ("quantization_config", "compression_config")


def read_quantization(config: HfConfig) -> HfConfig | None:
    """Returns the quantisation settings of config.json, None if the weights are plain."""
    return next((section for key in _KEYS if (section := config.section(key)) is not None), None)


def find_method(quantization: HfConfig) -> str:
    """Returns the name of the format. Raises ModelLoadError if it is not one of FORMATS."""
    is_older = "config_groups" in quantization.values  # only compressed-tensors has config_groups
    method = quantization.text("quant_method", "compressed-tensors" if is_older else None)
    if method not in FORMATS:
        raise quantization.refuse("quant_method", ", ".join(FORMATS))
    return method


def read_format(quantization: HfConfig, checkpoint: Checkpoint) -> Format:
    """Returns the format of the checkpoint. Raises ModelLoadError."""
    return FORMATS[find_method(quantization)](quantization, checkpoint)
