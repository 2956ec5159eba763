"""In gpt-oss's MXFP4, for experts, 32 columns share a power of two, two values to a byte.

A tensor `name`, in bfloat16 [experts, columns, rows], is stored as (transformers,
integrations/mxfp4.py):

    name_blocks  [experts, rows, columns / 32, 16] uint8, the even column in the low half
    name_scales  [experts, rows, columns / 32]     uint8, exponents with a bias of 127
"""

from collections.abc import Iterable, Iterator

from ouzel.backends.openvino.weights.encodings import MXFP4, Parts
from ouzel.backends.openvino.weights.quantized.stored import Stored, make_packed
from ouzel.backends.openvino.weights.safetensors import Checkpoint, chunk_rows, read_chunks
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

GROUP_SIZE = MXFP4.group_size
_BLOCKS, _SCALES = "_blocks", "_scales"


class Mxfp4:
    """Reads MXFP4; implements `Format`."""

    summary = "mxfp4, 4 bits in groups of 32"

    def __init__(self, config: HfConfig, checkpoint: Checkpoint) -> None:
        config.refuse_others({"quant_method", "modules_to_not_convert", "dequantize"})
        self.checkpoint = checkpoint

    def names(self) -> Iterable[str]:
        return (
            name.removesuffix(_BLOCKS).removesuffix(_SCALES) for name in self.checkpoint.names()
        )

    def find(self, tensor: Tensor) -> Stored | None:
        if self.checkpoint.find(tensor.name + _BLOCKS) is None:
            return None
        if not tensor.is_transposed or tensor.shape[-2] % GROUP_SIZE:
            raise ModelLoadError(
                f"tensor {tensor.name} is stored in mxfp4, which is supported for experts with a "
                "multiple of 32 columns only"
            )
        *outer, columns, rows = tensor.shape
        groups = (*outer, rows, columns // GROUP_SIZE)
        blocks = self.checkpoint.locate(tensor.name + _BLOCKS, (*groups, GROUP_SIZE // 2), "U8")
        scales = self.checkpoint.locate(tensor.name + _SCALES, groups, "U8", "F8_E8M0")

        def parts() -> Iterator[Parts]:
            rows_per_chunk = chunk_rows(columns)
            values = read_chunks(blocks, columns // 2, rows_per_chunk)
            for chunk, exponents in zip(
                values, read_chunks(scales, groups[-1], rows_per_chunk), strict=True
            ):
                yield {"values": chunk, "scales": exponents}

        return make_packed(MXFP4, parts)
