"""Encodes AWS's event stream: messages of named headers and a payload, with lengths and checksums.

A message has its whole length, the length of its headers (4 bytes each), the CRC-32 of these eight
bytes, the headers, the payload, and the CRC-32 of all bytes before. All numbers are big-endian.
SageMaker sends each piece of a container's stream as the payload of a PayloadPart message.
"""

import struct
from collections.abc import Mapping
from zlib import crc32

from starlette.types import Message, Send

MEDIA_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7  # type of a header's value
_NUM_FRAME_BYTES = 16  # bytes of the two lengths and the two checksums of a message
_PART_HEADERS = {
    ":message-type": "event",
    ":event-type": "PayloadPart",
    ":content-type": "application/octet-stream",
}
_NOT_OF_MESSAGES = (b"content-type", b"content-length")


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    encoded = b"".join(
        _encode_header(name.encode(), value.encode()) for name, value in headers.items()
    )
    lengths = struct.pack(">II", len(encoded) + len(payload) + _NUM_FRAME_BYTES, len(encoded))
    message = b"".join((lengths, struct.pack(">I", crc32(lengths)), encoded, payload))
    return message + struct.pack(">I", crc32(message))


def encode_part(payload: bytes) -> bytes:
    return encode_message(_PART_HEADERS, payload)


def _encode_header(name: bytes, value: bytes) -> bytes:
    return struct.pack(">B", len(name)) + name + struct.pack(">BH", _STRING, len(value)) + value


class PartsSend:
    """Sends each piece of a response as a message.

    SageMaker's header has the type of the pieces.
    """

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [
                (name, value) for name, value in message["headers"] if name not in _NOT_OF_MESSAGES
            ]
            types = [value for name, value in message["headers"] if name == b"content-type"]
            content_type = [(b"x-amzn-sagemaker-content-type", value) for value in types]
            headers = [(b"content-type", MEDIA_TYPE.encode()), *content_type, *own]
            await self._send({**message, "headers": headers})
            return
        body = message.get("body", b"")
        await self._send({**message, "body": encode_part(body) if body else b""})
