"""In GPTQ `qweight` has the columns of the weight below each other, four or eight bits a value.

A weight [rows, columns], with P values in an int32 (the lowest bits first) and G groups of columns,
is stored as (AutoGPTQ, nn_modules/qlinear):

    qweight  [columns / P, rows]   scales  [G, rows]
    qzeros   [G, rows / P]         g_idx   [columns]   the group of each column; optional

Checkpoints of format `gptq` store each zero point minus one, subtracted from whole int32s
(GPTQModel, utils/model.py); checkpoints of `gptq_v2` store the zero points unchanged. If act-order
scattered the columns of a group, no encoding of Ouzel fits, and the matrix can only be decoded to
rows.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.name_patterns import names_by_pattern
from ouzel.backends.openvino.weights.encodings import Encoding, Parts, unpack_nibbles
from ouzel.backends.openvino.weights.quantized.stored import (
    Stored,
    find_group_order,
    make_packed,
    module_names,
    plain_name,
    read_scales,
    reorder_columns,
    scale_type,
    split_words,
)
from ouzel.backends.openvino.weights.safetensors import PLAIN_TYPES, Checkpoint, chunk_rows
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

COMPANIONS = (".qweight", ".qzeros", ".scales", ".g_idx")
WIDTHS = (4, 8)

# Weights are read by the tensors alone; most of these keys tell how weights were made.
_KNOWN = {
    *(
        "quant_method",
        "bits",
        "group_size",
        "checkpoint_format",
        "format",
        "dynamic",
        "sym",
        "desc_act",
        "lm_head",
    ),
    *(
        "pack_dtype",
        "static_groups",
        "true_sequential",
        "damp_percent",
        "damp_auto_increment",
        "mse",
        "meta",
    ),
    *(
        "model_name_or_path",
        "model_file_base_name",
        "quantizer",
        "tokenizer",
        "dataset",
        "batch_size",
        "pad_token_id",
    ),
    *(
        "block_name_to_quantize",
        "module_name_preceding_first_block",
        "modules_in_block_to_quantize",
        "model_seqlen",
    ),
    *(
        "cache_block_outputs",
        "max_input_length",
        "use_exllama",
        "disable_exllama",
        "exllama_config",
        "use_cuda_fp16",
    ),
    *("act_group_aware", "backend", "version", "is_marlin_format", "modules_to_not_convert"),
}
_OVERRIDES = {"bits", "group_size", "sym", "desc_act", "mse", "damp_percent"}


class Gptq:
    """Reads GPTQ; implements `Format`."""

    def __init__(self, config: HfConfig, checkpoint: Checkpoint) -> None:
        config.refuse_others(_KNOWN)
        if config.flag("is_marlin_format", False):
            raise config.refuse("is_marlin_format", "false")
        key = "checkpoint_format" if config.has("checkpoint_format") else "format"
        stored_format = config.text(key, "gptq").lower()
        if stored_format not in {"gptq", "gptq_v2"}:
            raise config.refuse(key, "gptq, gptq_v2")
        if config.has("pack_dtype") and config.text("pack_dtype") != "int32":
            raise config.refuse("pack_dtype", "int32")
        self.checkpoint = checkpoint
        self._zeros_are_less_one = stored_format == "gptq"
        self._bits, self._group_size = config.integer("bits"), config.integer("group_size", 128)
        self._needs_order = config.flag("desc_act", False)
        if self._bits not in WIDTHS:
            raise config.refuse("bits", "4, 8")
        self._dynamic = config.section("dynamic")
        for pattern in self._dynamic.values if self._dynamic else ():
            _override(self._dynamic, pattern)
        patterns = (
            {_without_sign(pattern) for pattern in self._dynamic.values} if self._dynamic else set()
        )
        self._matched = names_by_pattern(
            patterns, module_names(checkpoint), "config.json: quantization_config: dynamic"
        )
        self.summary = f"{stored_format}, {self._bits} bits in groups of {self._group_size}"

    def names(self) -> Iterable[str]:
        """Yields the plain names, without the biases of zeros that AutoGPTQ adds to matrices
        without bias.
        """
        for name in self.checkpoint.names():
            if not self._is_zero_bias(name):
                yield plain_name(name, COMPANIONS)

    def find(self, tensor: Tensor) -> Stored | None:
        base = tensor.name.removesuffix(".weight")
        qweight = self.checkpoint.find(base + ".qweight")
        if qweight is None or len(tensor.shape) != 2:
            return None
        bits, group_size = self._settings(base, qweight.name.removesuffix(".qweight"))
        rows, columns = tensor.shape
        group_size = columns if group_size == -1 else group_size
        per_word = 32 // bits
        if group_size < 1 or columns % group_size or columns % per_word or rows % per_word:
            raise ModelLoadError(
                f"tensor {tensor.name}: {rows} rows and {columns} columns do not go into "
                f"groups of {group_size} and {per_word} values to an int32"
            )
        num_groups = columns // group_size
        self.checkpoint.locate(base + ".qweight", (columns // per_word, rows), "I32")
        self.checkpoint.locate(base + ".qzeros", (num_groups, rows // per_word), "I32")
        scales = self.checkpoint.locate(base + ".scales", (num_groups, rows), *PLAIN_TYPES)
        encoding = Encoding("u4" if bits == 4 else "u8", scale_type(scales), "u8", group_size)
        order = self._column_order(base, columns, group_size)
        return make_packed(
            encoding, lambda: self._parts(base, tensor.shape, (bits, num_groups), order), order
        )

    def _parts(
        self, base: str, shape: tuple[int, ...], width: tuple[int, int], order: NDArray[Any] | None
    ) -> Iterator[Parts]:
        (rows, columns), (bits, num_groups) = shape, width
        per_word = 32 // bits
        words = self.checkpoint.read(base + ".qweight", (columns // per_word, rows), "I32")
        scales = read_scales(self.checkpoint, base + ".scales", (num_groups, rows)).T
        zeros = self._zeros(base, (num_groups, rows // per_word), bits)
        rows_per_chunk = chunk_rows(columns)
        for start in range(0, rows, rows_per_chunk):
            some = slice(start, start + rows_per_chunk)
            values = reorder_columns(split_words(words[:, some].T), order, bits)
            yield {"values": values, "scales": scales[some], "zeros": zeros[some]}

    def _zeros(self, base: str, shape: tuple[int, int], bits: int) -> NDArray[np.uint8]:
        words = self.checkpoint.read(base + ".qzeros", shape, "I32").view(np.uint32)
        if self._zeros_are_less_one:
            words = words + np.uint32(0x11111111 if bits == 4 else 0x01010101)
        levels = split_words(words)
        return (unpack_nibbles(levels) if bits == 4 else levels).T

    def _column_order(self, base: str, columns: int, group_size: int) -> NDArray[Any] | None:
        name = base + ".g_idx"
        if self.checkpoint.find(name) is None:
            if self._needs_order and group_size < columns:
                raise ModelLoadError(
                    f"tensor {name} is missing: with desc_act it assigns the columns to groups"
                )
            return None
        return find_group_order(self.checkpoint.read(name, (columns,), "I32"), group_size, name)

    def _settings(self, base: str, name: str) -> tuple[int, int]:
        """Returns bits and group size of a matrix, by the first rule that matches one of
        its names.
        """
        for pattern in self._dynamic.values if self._dynamic else ():
            if self._matched[_without_sign(pattern)].isdisjoint({name, base}):
                continue
            if pattern.startswith("-:"):
                raise ModelLoadError(
                    f"tensor {base}.qweight is quantised, but dynamic {pattern} says that it is not"
                )
            override = _override(self._dynamic, pattern)
            return override.integer("bits", self._bits), override.integer(
                "group_size", self._group_size
            )
        return self._bits, self._group_size

    def _is_zero_bias(self, name: str) -> bool:
        if (
            not name.endswith(".bias")
            or self.checkpoint.find(name.removesuffix(".bias") + ".qweight") is None
        ):
            return False
        location = self.checkpoint.find(name)
        assert location is not None, "the name comes from the checkpoint"
        return not self.checkpoint.floats(name, location.shape).any()


def _without_sign(pattern: str) -> str:
    return pattern.removeprefix("+:").removeprefix("-:")


def _override(dynamic: HfConfig | None, pattern: str) -> HfConfig:
    """Returns the settings of a rule. Raises ModelLoadError if they are not supported."""
    assert dynamic is not None
    override = dynamic.section(pattern) or HfConfig({})
    override.refuse_others(_OVERRIDES)
    if override.has("bits") and override.integer("bits") not in WIDTHS:
        raise override.refuse("bits", "4, 8")
    return override
