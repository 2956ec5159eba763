"""Reads bitsandbytes: nf4 and fp4 with a scale for a block of elements, and int8 with one for a
row.

Blocks may cross rows. A weight [rows, columns] in four bits is stored as (bitsandbytes,
functional.py: QuantState):

    weight
        [rows * columns / 2, 1] uint8, the even column in the high half
    weight.quant_map
        [16] float32, the value of each level
    weight.absmax
        [blocks] float32, or uint8 if the scales are quantised, too; in this case also:
    weight.nested_quant_map
        [256] float32, the value of each level of a scale
    weight.nested_absmax
        a scale for each nested_blocksize scales; nested_offset is added afterwards
    weight.quant_state.bitsandbytes__nf4
        JSON as uint8: blocksize, shape, nested_blocksize, nested_offset

In eight bits: weight [rows, columns] int8 and SCB [rows]; the value of a level is level * SCB /
127.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.decoding import NF4
from ouzel.backends.openvino.weights.encodings import Encoding, Parts, unpack_nibbles
from ouzel.backends.openvino.weights.quantized.stored import (
    Rows,
    Stored,
    make_packed,
    make_recompressed,
    plain_name,
)
from ouzel.backends.openvino.weights.safetensors import (
    PLAIN_TYPES,
    Checkpoint,
    chunk_rows,
    read_chunks,
)
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

STATES = (".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4")
COMPANIONS = (
    *(
        f".weight{end}"
        for end in (*STATES, ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map")
    ),
    *(".SCB", ".weight_format"),
)
FOUR_BITS = StoredForm("bitsandbytes 4-bit", 4)  # fp4, or nf4 in blocks that cross rows
ROW_MAJOR = 0  # value of weight_format; the layouts of older graphics cards have other numbers

_KNOWN = {
    *(
        "quant_method",
        "load_in_8bit",
        "load_in_4bit",
        "_load_in_8bit",
        "_load_in_4bit",
        "bnb_4bit_compute_dtype",
    ),
    *(
        "bnb_4bit_quant_storage",
        "bnb_4bit_quant_type",
        "bnb_4bit_use_double_quant",
        "llm_int8_threshold",
    ),
    *("llm_int8_skip_modules", "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight"),
}


class QuantState(msgspec.Struct, frozen=True):
    blocksize: int
    shape: tuple[int, ...]
    nested_blocksize: int = 0
    nested_offset: float = 0.0


_decode_state = msgspec.json.Decoder(QuantState).decode


class BitsAndBytes:
    """Reads bitsandbytes; implements `Format`."""

    def __init__(self, config: HfConfig, checkpoint: Checkpoint) -> None:
        config.refuse_others(_KNOWN)
        if config.text("bnb_4bit_quant_storage", "uint8") != "uint8":
            raise config.refuse("bnb_4bit_quant_storage", "uint8")
        self.checkpoint = checkpoint
        is_int8 = config.flag("load_in_8bit", config.flag("_load_in_8bit", False))
        self.summary = (
            f"bitsandbytes, {'int8' if is_int8 else config.text('bnb_4bit_quant_type', 'fp4')}"
        )

    def names(self) -> Iterable[str]:
        return (plain_name(name, COMPANIONS) for name in self.checkpoint.names())

    def find(self, tensor: Tensor) -> Stored | None:
        location = self.checkpoint.find(tensor.name)
        if location is None or len(tensor.shape) != 2:
            return None
        has_row_scales = (
            self.checkpoint.find(tensor.name.removesuffix(".weight") + ".SCB") is not None
        )
        if location.dtype in PLAIN_TYPES and not has_row_scales:
            return None
        if location.dtype == "I8" or has_row_scales:
            return self._eight_bits(tensor)
        state = self._state(tensor)
        if state.shape != tensor.shape or state.blocksize < 2 or state.blocksize % 2:
            raise ModelLoadError(
                f"tensor {tensor.name}: its quant_state has the shape {list(state.shape)} in "
                f"blocks of {state.blocksize}, but config.json requires {list(tensor.shape)}"
            )
        rows, columns = tensor.shape
        if not 0 <= state.nested_blocksize < 2**31:
            raise ModelLoadError(
                f"tensor {tensor.name}: nested_blocksize cannot be {state.nested_blocksize}"
            )
        if columns % 2 or (rows * columns) % state.blocksize:
            raise ModelLoadError(
                f"tensor {tensor.name} does not go into blocks of {state.blocksize}"
            )
        self.checkpoint.locate(tensor.name, (rows * columns // 2, 1), "U8")
        levels = self.checkpoint.floats(tensor.name + ".quant_map", (16,))
        scales = self._scales(tensor, state)
        if columns % state.blocksize or not np.array_equal(levels, NF4):
            return make_recompressed(
                FOUR_BITS, lambda: self._rows(tensor, levels, np.repeat(scales, state.blocksize))
            )
        encoding = Encoding("nf4", "f32", group_size=state.blocksize)
        return make_packed(encoding, lambda: self._parts(tensor, scales.reshape(rows, -1)))

    def _state(self, tensor: Tensor) -> QuantState:
        for end in STATES:
            if (location := self.checkpoint.find(tensor.name + end)) is not None:
                encoded = self.checkpoint.read(tensor.name + end, location.shape, "U8").tobytes()
                try:
                    return _decode_state(encoded)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise ModelLoadError(
                        f"tensor {tensor.name}{end} is not a quant_state of bitsandbytes: {error}"
                    ) from error
        raise ModelLoadError(
            f"tensor {tensor.name} is stored as bytes, but {tensor.name}{STATES[0]} is missing"
        )

    def _scales(self, tensor: Tensor, state: QuantState) -> NDArray[np.float32]:
        """Returns the scale of each block."""
        name = tensor.name + ".absmax"
        num_blocks = tensor.shape[0] * tensor.shape[1] // state.blocksize
        if not state.nested_blocksize:
            return self.checkpoint.floats(name, (num_blocks,))
        levels = self.checkpoint.read(name, (num_blocks,), "U8")
        values = self.checkpoint.floats(tensor.name + ".nested_quant_map", (256,))
        num_outer = -(-num_blocks // state.nested_blocksize)
        outer = self.checkpoint.floats(tensor.name + ".nested_absmax", (num_outer,))
        with np.errstate(all="ignore"):  # finite.py refuses scales that are NaN or infinite
            scales: NDArray[np.float32] = (
                values[levels] * outer[np.arange(num_blocks) // state.nested_blocksize]
            )
            return scales + np.float32(state.nested_offset)

    def _values(self, tensor: Tensor) -> Iterator[NDArray[Any]]:
        """Yields bytes of whole rows, with the even column in the low half."""
        rows, columns = tensor.shape
        location = self.checkpoint.locate(tensor.name, (rows * columns // 2, 1), "U8")
        for chunk in read_chunks(location, columns // 2, chunk_rows(columns)):
            yield (chunk << np.uint8(4)) | (chunk >> np.uint8(4))

    def _parts(self, tensor: Tensor, scales: NDArray[np.float32]) -> Iterator[Parts]:
        start = 0
        for chunk in self._values(tensor):
            yield {"values": chunk, "scales": scales[start : start + len(chunk)]}
            start += len(chunk)

    def _rows(
        self, tensor: Tensor, levels: NDArray[np.float32], scales: NDArray[np.float32]
    ) -> Rows:
        """Yields decoded rows; `scales` has one scale for each element."""
        start = 0
        for chunk in self._values(tensor):
            values = levels[unpack_nibbles(chunk)]
            with np.errstate(all="ignore"):
                rows = values * scales[start : start + values.size].reshape(values.shape)
            yield rows
            start += values.size

    def _eight_bits(self, tensor: Tensor) -> Stored:
        base, (rows, columns) = tensor.name.removesuffix(".weight"), tensor.shape
        location = self.checkpoint.locate(tensor.name, (rows, columns), "I8")
        scales = self.checkpoint.floats(base + ".SCB", (rows,)).reshape(rows, 1) / np.float32(127)
        layout = self.checkpoint.find(base + ".weight_format")
        if (
            layout is not None
            and self.checkpoint.read(base + ".weight_format", layout.shape, "U8").any()
        ):
            raise ModelLoadError(f"tensor {base}.weight_format must be {ROW_MAJOR}, row by row")

        def parts() -> Iterator[Parts]:
            start = 0
            for chunk in read_chunks(location, columns):
                yield {"values": chunk, "scales": scales[start : start + len(chunk)]}
                start += len(chunk)

        return make_packed(Encoding("i8", "f32"), parts)
