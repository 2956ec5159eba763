"""Writes GGUF files by the format's description, whole or broken."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Value = int | float | bool | str | list[str] | list[int] | list[bool]


@dataclass(frozen=True)
class Raw:
    """A metadata value, or an offset, as its bytes."""

    content: bytes


@dataclass(frozen=True)
class RawTensor:
    name: str
    shape: tuple[int, ...]  # dimensions, with the size of a row last
    block_type: int
    content: bytes
    offset: int | None = None  # None: the actual offset


def make_gguf(
    metadata: Mapping[str, Value | Raw],
    tensors: Sequence[RawTensor] = (),
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    """Makes the bytes of a file.

    `counts` are the numbers of tensors and of metadata entries in the header; by default they are
    right.
    """
    num_tensors, num_entries = counts or (len(tensors), len(metadata))
    header = b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_entries)
    header += b"".join(encode_string(key) + encode_value(value) for key, value in metadata.items())
    data = b""
    for tensor in tensors:
        offset = len(data) if tensor.offset is None else tensor.offset
        header += encode_string(tensor.name) + struct.pack("<I", len(tensor.shape))
        header += b"".join(struct.pack("<Q", size) for size in reversed(tensor.shape))
        header += struct.pack("<IQ", tensor.block_type, offset)
        data += tensor.content + b"\0" * (-len(tensor.content) % 32)
    return header + b"\0" * (-len(header) % 32) + data


def encode_string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def encode_value(value: Value | Raw) -> bytes:
    match value:
        case Raw():
            return value.content
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<Ii", 5, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + encode_string(value)
        case list():
            is_text = any(isinstance(item, str) for item in value)
            items = [
                encode_string(str(item)) if is_text else struct.pack("<i", item) for item in value
            ]
            return struct.pack("<IIQ", 9, 8 if is_text else 5, len(value)) + b"".join(items)
