"""Input items as they are kept and listed: complete, each with an id, as OpenAI shows them (`ResponseItem`)."""

from collections.abc import Iterable

import msgspec

from ouzel.api.responses.input_items import Message, PlacedItem
from ouzel.api.responses.items import new_id
from ouzel.store.records import Item

_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}
_OUTPUT_KEYS: Message = {"annotations": [], "logprobs": []}


def kept_items(items: Iterable[PlacedItem]) -> tuple[Item, ...]:
    """`items` have been shown to be valid. Each gets an id of its own, also one that was made elsewhere."""
    return tuple(_kept(placed.item) for placed in items)


def _kept(given: Message) -> Item:
    kind = given.get("type") or "message"
    assert isinstance(kind, str)
    item_id = new_id(_PREFIXES[kind])
    known = {name: value for name, value in given.items() if value is not None}
    shown: Message = {**known, "type": kind, "id": item_id, "status": given.get("status") or "completed"}
    match kind:
        case "message":
            is_answer = given["role"] == "assistant"
            shown["content"] = _parts(given["content"], "output_text" if is_answer else "input_text")
        case "reasoning":
            shown["summary"] = given.get("summary") or []
    return Item(item_id, msgspec.json.encode(shown))


def _parts(content: object, kind: str) -> list[Message]:
    if isinstance(content, str):
        content = [{"type": kind, "text": content}]
    assert isinstance(content, list)
    return [{**_OUTPUT_KEYS, **part} if part["type"] == "output_text" else part for part in content]
