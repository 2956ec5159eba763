"""What was kept without encrypted reasoning is shown with it to who asks for it: it is the same text once more."""

import msgspec

from ouzel.responses.item_fields import Message
from ouzel.responses.items.packed_text import REASONING

_REASONING = b'"type":"reasoning"'


def with_encrypted_reasoning(body: bytes) -> bytes:
    """Expects an item, a response, or an event of a response as the store keeps them."""
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
            value.setdefault("encrypted_content", REASONING.pack(_text_of(value)))
        _encrypt(value.get("output"))


def _text_of(item: Message) -> str:
    """Returns what the model is shown of it."""
    parts = item.get("content") or item["summary"]
    assert isinstance(parts, list)
    return "\n".join(part["text"] for part in parts)
