"""Adds `encrypted_content` to stored reasoning items for clients that ask for it.

The store has the plain text only; `encrypted_content` is the same text, packed (`packed_text`).
"""

import msgspec

from ouzel.responses.item_fields import Message
from ouzel.responses.items.packed_text import REASONING

_REASONING = b'"type":"reasoning"'


def with_encrypted_reasoning(body: bytes) -> bytes:
    """Adds `encrypted_content` to the reasoning items in the stored JSON `body`.

    `body` is an item, a response, or an event of a response.
    """
    if _REASONING not in body:
        return body
    value = msgspec.json.decode(body, type=Message)
    for holder in (value, value.get("item"), value.get("response")):
        _encrypt(holder)
    return msgspec.json.encode(value)


def _encrypt(value: object) -> None:
    if isinstance(value, list):
        for item in value:
            _encrypt(item)
    elif isinstance(value, dict):
        if value.get("type") == "reasoning":
            value.setdefault("encrypted_content", REASONING.pack(_join_parts(value)))
        _encrypt(value.get("output"))


def _join_parts(item: Message) -> str:
    """Returns the text of a reasoning item in a later prompt: its content, else its summary."""
    parts = item.get("content") or item["summary"]
    assert isinstance(parts, list)
    return "\n".join(part["text"] for part in parts)
