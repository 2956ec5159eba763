"""Reads the header of whisper.cpp's GGML files: sizes, tokens, and the places of the tensors.

The format, in little-endian order:

    u32 0x67676d6c, i32 for each field of GgmlSizes
    i32 mel bins, i32 frequencies, f32 for each of both: the filters of the spectrum
    i32 number of tokens; u32 length and bytes of each; special tokens have none
    tensors, to the end of the file: i32 number of dimensions, i32 length of the name, i32 block
             type, i32 each dimension (the row's first), name, blocks
"""

from dataclasses import dataclass, fields
from pathlib import Path

from ouzel.checkpoint.model_files import MAX_VOCAB_SIZE, brief
from ouzel.errors import ModelLoadError
from ouzel.gguf.block_types import BLOCK_TYPES
from ouzel.whisper_files.file_cursor import FileCursor, open_cursor
from ouzel.whisper_files.files import GGML_MAGIC
from ouzel.whisper_files.stored_tensor import StoredTensor, count_bytes, locate_tensor

_MAX_SIZE = 2**22  # the limit of each number in the header
_MAX_TENSORS = 2**16
_MAX_DIMENSIONS = 4
_MAX_NAME_BYTES = 2**10
_MAX_TOKEN_BYTES = 2**8  # GPT-2's longest token has half as many
_MAX_VOCABULARY_BYTES = 2**20  # all tokens together; GPT-2's have a third of it


@dataclass(frozen=True, slots=True)
class GgmlSizes:
    """The numbers at the start of the file, in their order there."""

    vocab_size: int
    max_source_positions: int
    encoder_width: int
    encoder_heads: int
    encoder_layers: int
    max_target_positions: int
    decoder_width: int
    decoder_heads: int
    decoder_layers: int
    num_mel_bins: int
    file_type: int


@dataclass(frozen=True, slots=True)
class GgmlFile:
    sizes: GgmlSizes
    tokens: list[bytes]  # tokens of texts by id, without special tokens in most files
    tensors: dict[str, StoredTensor]


def read_ggml(path: Path) -> GgmlFile:
    """Reads everything but the values of the tensors. Raises ModelLoadError."""
    with open_cursor(path) as cursor:
        if cursor.integer("I") != GGML_MAGIC:
            raise ModelLoadError(f"{path} is not a GGML file: it must begin with {GGML_MAGIC:#x}")
        sizes = GgmlSizes(*(cursor.count("i", each.name, _MAX_SIZE) for each in fields(GgmlSizes)))
        num_bins = cursor.count("i", "mel bins", _MAX_SIZE)
        cursor.skip(4 * num_bins * cursor.count("i", "frequencies", _MAX_SIZE))
        tokens = _read_tokens(cursor)
        tensors: dict[str, StoredTensor] = {}
        while not cursor.is_at_end:
            stored = _read_tensor(cursor)
            if stored.name in tensors or len(tensors) == _MAX_TENSORS:
                raise ModelLoadError(
                    f"{path} must have <= {_MAX_TENSORS} tensors of different names, "
                    f"found {brief(stored.name)} after {len(tensors)}"
                )
            tensors[stored.name] = stored
    return GgmlFile(sizes, tokens, tensors)


def _read_tokens(cursor: FileCursor) -> list[bytes]:
    tokens, num_bytes = [], 0
    for _ in range(cursor.count("i", "tokens", MAX_VOCAB_SIZE)):
        token = cursor.take(cursor.count("I", "bytes in a token", _MAX_TOKEN_BYTES))
        tokens.append(token)
        num_bytes += len(token)
        if num_bytes > _MAX_VOCABULARY_BYTES:
            raise ModelLoadError(
                f"{cursor.path} must have <= {_MAX_VOCABULARY_BYTES} bytes of tokens, found more"
            )
    return tokens


def _read_tensor(cursor: FileCursor) -> StoredTensor:
    num_dimensions = cursor.count("i", "dimensions", _MAX_DIMENSIONS)
    name_bytes = cursor.count("i", "bytes in a name", _MAX_NAME_BYTES)
    number = cursor.integer("i")
    shape = tuple(cursor.integer("i") for _ in range(num_dimensions))[::-1] or (1,)
    name = cursor.text(name_bytes)
    block_type = BLOCK_TYPES.get(number)
    if block_type is None:
        raise ModelLoadError(
            f"{cursor.path}: tensor {brief(name)} has the unknown block type {number}"
        )
    location = locate_tensor(cursor.path, name, block_type, shape, cursor.position)
    cursor.skip(count_bytes(location))
    return StoredTensor(name, location)
