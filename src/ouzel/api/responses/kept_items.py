"""Input items as they are kept and listed: complete, each with an id, as OpenAI shows them (`ResponseItem`)."""

from collections.abc import Iterable

import msgspec

from ouzel.api.responses.input_items import Message, PlacedItem
from ouzel.api.responses.items import new_id
from ouzel.store.records import Item

_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "compaction": "cmp",
}
_KEYS = {  # of an item or a part; what else a client sends is not shown to the model, and not kept either
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "reasoning": ("summary", "content"),
    "compaction": ("encrypted_content",),
    "input_text": ("text",),
    "output_text": ("text",),
    "refusal": ("refusal",),
    "reasoning_text": ("text",),
    "summary_text": ("text",),
}
_OUTPUT_KEYS: Message = {"annotations": [], "logprobs": []}


def kept_items(items: Iterable[PlacedItem]) -> tuple[Item, ...]:
    """`items` have been shown to be valid. Each gets an id of its own, also one that was made elsewhere."""
    return tuple(_kept(placed.item) for placed in items)


def _kept(given: Message) -> Item:
    kind = given.get("type") or "message"
    assert isinstance(kind, str)
    item_id = new_id(_PREFIXES[kind])
    shown: Message = {"type": kind, "id": item_id, **_known(given, kind)}
    if kind != "compaction":
        shown["status"] = given.get("status") or "completed"
    match kind:
        case "message":
            is_answer = given["role"] == "assistant"
            shown["content"] = _parts(given["content"], "output_text" if is_answer else "input_text")
        case "reasoning":
            shown["summary"] = shown.get("summary") or []
    return Item(item_id, msgspec.json.encode(shown))


def _known(given: Message, kind: str) -> Message:
    """Its own keys, and those of the parts in its lists."""
    return {name: _plain(given[name]) for name in _KEYS[kind] if given.get(name) is not None}


def _plain(value: object) -> object:
    return _parts(value, "") if isinstance(value, list) else value


def _parts(content: object, kind: str) -> list[Message]:
    """`kind`: of a text that is no list."""
    if isinstance(content, str):
        content = [{"type": kind, "text": content}]
    assert isinstance(content, list)
    return [_part(part) for part in content]


def _part(given: Message) -> Message:
    kind = given["type"]
    assert isinstance(kind, str)
    more = _OUTPUT_KEYS if kind == "output_text" else {}
    return {"type": kind, **_known(given, kind), **more}
