"""In AWQ `qweight` has the rows of the weight beside each other, eight nibbles to an int32.

A weight [rows, columns] with G groups of columns is stored as (AutoAWQ, modules/linear/gemm.py):

    qweight  [columns, rows / 8]   qzeros  [G, rows / 8]   scales  [G, rows]

The nibbles of an int32, from the lowest, are the rows 0 2 4 6 1 3 5 7 of each eight.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts, pack_nibbles, unpack_nibbles
from ouzel.backends.openvino.weights.quantized.stored import (
    Stored,
    make_packed,
    plain_name,
    read_scales,
    scale_type,
    split_words,
)
from ouzel.backends.openvino.weights.safetensors import PLAIN_TYPES, Checkpoint, chunk_rows
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

COMPANIONS = (".qweight", ".qzeros", ".scales")
ROWS_PER_WORD = 8
NIBBLE_OF_ROW = [0, 4, 1, 5, 2, 6, 3, 7]

_KNOWN = {
    *(
        "quant_method",
        "bits",
        "w_bit",
        "group_size",
        "q_group_size",
        "version",
        "format",
        "checkpoint_format",
    ),
    *(
        "zero_point",
        "modules_to_not_convert",
        "backend",
        "pack_dtype",
        "sym",
        "desc_act",
        "lm_head",
        "meta",
    ),
    *(
        "do_fuse",
        "fuse_max_seq_len",
        "modules_to_fuse",
        "exllama_config",
        "true_sequential",
        "damp_percent",
    ),
    *(
        "dataset",
        "tokenizer",
        "batch_size",
        "block_name_to_quantize",
        "model_seqlen",
        "cache_block_outputs",
    ),
    *("act_group_aware", "max_input_length", "pad_token_id", "module_name_preceding_first_block"),
}


class Awq:
    """Reads AWQ; implements `Format`."""

    def __init__(self, config: HfConfig, checkpoint: Checkpoint) -> None:
        config.refuse_others(_KNOWN)
        for key in ("version", "format", "checkpoint_format"):
            if config.text(key, "gemm").lower() != "gemm":
                raise config.refuse(key, "gemm")
        if config.text("backend", "auto") == "llm-awq":
            raise config.refuse("backend", "autoawq")
        for key in ("bits", "w_bit"):
            if config.integer(key, 4) != 4:
                raise config.refuse(key, "4")
        self.checkpoint = checkpoint
        self._group_size = config.integer(
            "q_group_size" if config.has("q_group_size") else "group_size", 128
        )
        self.summary = f"awq, 4 bits in groups of {self._group_size}"

    def names(self) -> Iterable[str]:
        return (plain_name(name, COMPANIONS) for name in self.checkpoint.names())

    def find(self, tensor: Tensor) -> Stored | None:
        base = tensor.name.removesuffix(".weight")
        if self.checkpoint.find(base + ".qweight") is None or len(tensor.shape) != 2:
            return None
        rows, columns = tensor.shape
        group_size = columns if self._group_size == -1 else self._group_size
        if group_size < 1 or columns % group_size or rows % ROWS_PER_WORD:
            raise ModelLoadError(
                f"tensor {tensor.name}: {rows} rows and {columns} columns do not go into "
                f"groups of {group_size} and {ROWS_PER_WORD} rows to an int32"
            )
        num_groups = columns // group_size
        self.checkpoint.locate(base + ".qweight", (columns, rows // ROWS_PER_WORD), "I32")
        self.checkpoint.locate(base + ".qzeros", (num_groups, rows // ROWS_PER_WORD), "I32")
        scales = self.checkpoint.locate(base + ".scales", (num_groups, rows), *PLAIN_TYPES)
        return make_packed(
            Encoding("u4", scale_type(scales), "u8", group_size),
            lambda: self._parts(base, rows, columns, num_groups),
        )

    def _parts(self, base: str, rows: int, columns: int, num_groups: int) -> Iterator[Parts]:
        num_words = rows // ROWS_PER_WORD
        words = self.checkpoint.read(base + ".qweight", (columns, num_words), "I32")
        zeros = unpack_rows(self.checkpoint.read(base + ".qzeros", (num_groups, num_words), "I32"))
        scales = read_scales(self.checkpoint, base + ".scales", (num_groups, rows)).T
        words_per_chunk = -(-chunk_rows(columns) // ROWS_PER_WORD)
        for start in range(0, num_words, words_per_chunk):
            end = min(start + words_per_chunk, num_words)
            some = slice(start * ROWS_PER_WORD, end * ROWS_PER_WORD)
            values = pack_nibbles(unpack_rows(words[:, start:end]))
            yield {"values": values, "scales": scales[some], "zeros": zeros[some]}


def unpack_rows(words: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Unpacks [columns, words] to [8 * words, columns]."""
    nibbles = unpack_nibbles(split_words(words)).reshape(*words.shape, ROWS_PER_WORD)
    return nibbles[:, :, NIBBLE_OF_ROW].reshape(len(words), -1).T
