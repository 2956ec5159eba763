"""Events are kept in batches: each is a compressed list of those that were recorded together."""

import zlib
from collections.abc import Sequence

import msgspec

_LEVEL = 1  # events repeat their field names: higher levels gain little and cost much


def pack(events: Sequence[bytes]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(events), _LEVEL)


def unpack(batch: bytes) -> list[bytes]:
    return msgspec.msgpack.decode(zlib.decompress(batch), type=list[bytes])
