"""Encodes messages as frames: 4 bytes of length, big-endian, then MessagePack.

The first frame to the child process is its `EngineSpec`.
"""

import msgspec


def frame(message: object) -> bytes:
    payload = msgspec.msgpack.encode(message)
    return len(payload).to_bytes(4, "big") + payload
