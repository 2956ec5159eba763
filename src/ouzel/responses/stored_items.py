"""Input items as they are kept and listed: complete, each with an id, as OpenAI shows them (`ResponseItem`)."""

from collections.abc import Iterable, Mapping

import msgspec

from ouzel.responses.input_items import Message, PlacedItem
from ouzel.responses.items import new_id
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
_ANSWER_KINDS = {"input_text": "output_text", "output_text": "output_text", "refusal": "refusal"}
_INPUT_KINDS = {"input_text": "input_text", "output_text": "input_text", "refusal": "input_text"}
_OUTPUT_KEYS: Message = {"annotations": [], "logprobs": []}


def stored_items(items: Iterable[PlacedItem]) -> tuple[Item, ...]:
    """`items` have been shown to be valid. Each gets an id of its own, also one that was made elsewhere."""
    return tuple(_stored(placed.item) for placed in items)


def _stored(given: Message) -> Item:
    kind = given.get("type") or "message"
    assert isinstance(kind, str)
    item_id = new_id(_PREFIXES[kind])
    shown: Message = {"type": kind, "id": item_id, **_known(given, kind)}
    if kind != "compaction":
        shown["status"] = given.get("status") or "completed"
    match kind:
        case "message":
            kinds = _ANSWER_KINDS if given["role"] == "assistant" else _INPUT_KINDS
            shown["content"] = _content(given["content"], kinds)
        case "reasoning":
            shown["summary"] = shown.get("summary") or []
    return Item(item_id, msgspec.json.encode(shown))


def _known(given: Message, kind: str) -> Message:
    """Its own keys, and those of the parts in its lists."""
    return {name: _plain(given[name]) for name in _KEYS[kind] if given.get(name) is not None}


def _plain(value: object) -> object:
    return [_part(part) for part in value] if isinstance(value, list) else value


def _content(given: object, kinds: Mapping[str, str]) -> list[Message]:
    if isinstance(given, str):
        given = [{"type": "input_text", "text": given}]
    assert isinstance(given, list)
    return [_part(_as_said(part, kinds[part["type"]])) for part in given]


def _as_said(part: Message, kind: str) -> Message:
    """In a part of that kind."""
    return part if part["type"] == kind else {"type": kind, "text": part.get("text") or part.get("refusal") or ""}


def _part(given: Message) -> Message:
    kind = given["type"]
    assert isinstance(kind, str)
    more = _OUTPUT_KEYS if kind == "output_text" else {}
    return {"type": kind, **_known(given, kind), **more}
