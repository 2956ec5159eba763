"""AWS's event stream encoding: messages of named headers and a payload, each with its lengths and two checksums.

A message is: its whole length, the length of its headers (4 bytes each), the CRC-32 of these eight bytes, the headers,
the payload, the CRC-32 of all bytes before. All numbers are big-endian. SageMaker sends each piece of a container's
stream as the payload of a message of the type PayloadPart.
"""

import struct
from collections.abc import Mapping
from zlib import crc32

from starlette.types import Message, Send

MEDIA_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7  # the type of a header's value
_NUM_FRAME_BYTES = 16  # of a message: two lengths and two checksums
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
    """Sends a response with each piece of its body as a message; the pieces' own type is in a header of SageMaker's."""

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
