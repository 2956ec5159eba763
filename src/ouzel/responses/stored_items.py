"""Converts input items to the form that is stored and listed (OpenAI's `ResponseItem`)."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ouzel.responses.call_history import HOSTED_TYPES
from ouzel.responses.hosted.citations import Annotation
from ouzel.responses.hosted.items import read_hosted_item
from ouzel.responses.input_items import InputItem, encrypted_reasoning
from ouzel.responses.item_fields import Message
from ouzel.responses.output_items import new_id
from ouzel.store.records import Item

_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "reasoning": "rs",
    "compaction": "cmp",
}
# Type of an item or part -> its stored keys. The model reads no other keys, so none are stored.
_KEYS = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "namespace", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "namespace", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": ("summary", "content"),
    "compaction": ("encrypted_content",),
    "input_text": ("text",),
    "input_image": ("detail", "image_url", "file_id"),
    "input_audio": ("input_audio",),
    "input_file": ("detail", "file_data", "file_url", "file_id", "filename"),
    "output_text": ("text",),
    "refusal": ("refusal",),
    "reasoning_text": ("text",),
    "summary_text": ("text",),
}
_ANSWER_KINDS = {"input_text": "output_text", "output_text": "output_text", "refusal": "refusal"}
_INPUT_KINDS = {
    "input_text": "input_text",
    "output_text": "input_text",
    "refusal": "input_text",
    "input_image": "input_image",
    "input_audio": "input_audio",
    "input_file": "input_file",
}


def stored_items(items: Iterable[InputItem]) -> tuple[Item, ...]:
    """Converts valid items; each item gets a new id, also if it already has an id.

    Items of hosted tools that the model does not read are left out, as they are in the prompt.
    """
    stored = (_stored_item(item.fields) for item in items)
    return tuple(item for item in stored if item is not None)


def _stored_item(fields: Message) -> Item | None:
    if fields.get("type") in HOSTED_TYPES:
        hosted = read_hosted_item(fields)
        if hosted is None:
            return None
        if not hosted.keeps_id:
            hosted = replace(hosted, id=new_id(hosted.id_prefix))
        return Item(hosted.id, msgspec.json.encode(hosted))
    kind = fields.get("type") or "message"
    assert isinstance(kind, str)
    item_id = new_id(_PREFIXES[kind])
    item: Message = {"type": kind, "id": item_id, **_known_fields(fields, kind)}
    if kind != "compaction":
        item["status"] = fields.get("status") or "completed"
    match kind:
        case "message":
            kinds = _ANSWER_KINDS if fields["role"] == "assistant" else _INPUT_KINDS
            item["content"] = _content(fields["content"], kinds)
        case "reasoning":
            item["summary"] = item.get("summary") or []
            if not item.get("content") and (texts := encrypted_reasoning(fields)):
                item["content"] = [{"type": "reasoning_text", "text": text} for text in texts]
    return Item(item_id, msgspec.json.encode(item))


def _known_fields(fields: Message, kind: str) -> Message:
    """Returns the stored keys of an item or part; the parts in its lists are filtered too."""
    return {name: _plain(fields[name]) for name in _KEYS[kind] if fields.get(name) is not None}


def _plain(value: object) -> object:
    return [show_part(part) for part in value] if isinstance(value, list) else value


def _content(content: object, kinds: Mapping[str, str]) -> list[Message]:
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    assert isinstance(content, list)
    return [show_part(_as_kind(part, kinds[part["type"]])) for part in content]


def _as_kind(part: Message, kind: str) -> Message:
    """Converts a text part to the type `kind`; a part of that type is returned unchanged."""
    if part["type"] == kind:
        return part
    return {"type": kind, "text": part.get("text") or part.get("refusal") or ""}


def show_part(part: Message) -> Message:
    """Returns a valid part with the stored keys, in OpenAI's form."""
    kind = part["type"]
    assert isinstance(kind, str)
    if kind == "input_image":
        part = _picture(part)
    more: Message = {}
    if kind == "output_text":
        more = {"annotations": _read_annotations(part), "logprobs": []}
    return {"type": kind, **_known_fields(part, kind), **more}


def _read_annotations(part: Message) -> list[Annotation]:
    """Returns the citations in a text that a client sends back; none if they cannot be read."""
    try:
        return msgspec.convert(part.get("annotations") or [], list[Annotation])
    except msgspec.ValidationError:
        return []


def _picture(part: Message) -> Message:
    """Converts an image part to OpenAI's form: the URL is a string, and `detail` is present."""
    value = part.get("image_url")
    if value is None:
        return {"file_id": part["file_id"], "detail": part.get("detail") or "auto"}
    if isinstance(value, dict):
        url, detail = value["url"], value.get("detail")
    else:
        url, detail = value, part.get("detail")
    return {"image_url": url, "detail": detail or "auto"}
