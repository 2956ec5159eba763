"""Compresses events for the store; a batch is the list of the events of one write."""

import zlib
from collections.abc import Sequence

import msgspec

_LEVEL = 1  # events repeat their field names: higher levels gain little and cost much


def pack(events: Sequence[bytes]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(events), _LEVEL)


def unpack(batch: bytes) -> list[bytes]:
    return msgspec.msgpack.decode(zlib.decompress(batch), type=list[bytes])
