"""config.json says which format a checkpoint is quantised in."""

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
_KEYS = (
    "quantization_config",
    "compression_config",
)  # the second is what compressed-tensors once wrote


def quantization_of(config: HfConfig) -> HfConfig | None:
    """Returns what config.json says of it; None where the weights are plain."""
    return next((section for key in _KEYS if (section := config.section(key)) is not None), None)


def method_of(quantization: HfConfig) -> str:
    """Raises ModelLoadError where it is none of FORMATS."""
    is_older = "config_groups" in quantization.values  # which only one has
    method = quantization.text("quant_method", "compressed-tensors" if is_older else None)
    if method not in FORMATS:
        raise quantization.refuse("quant_method", ", ".join(FORMATS))
    return method


def read_format(quantization: HfConfig, checkpoint: Checkpoint) -> Format:
    return FORMATS[method_of(quantization)](quantization, checkpoint)
