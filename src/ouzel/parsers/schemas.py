"""What the formats need to know of a tool's JSON schema."""

import json
from collections.abc import Callable
from urllib.parse import quote

from ouzel.parsers.base import Format
from ouzel.types import FunctionTool


def arguments_schema(tool: FunctionTool) -> dict[str, object]:
    """Of the arguments as one JSON object, as a format takes it; a tool without parameters takes none."""
    schema = tool.parameters or {"type": "object", "properties": {}, "additionalProperties": False}
    return {"strict": True, "schema": schema} if tool.strict else schema


def call_tag(tool: FunctionTool, begin: str, end: str) -> Format:
    """The tool's arguments between two texts."""
    return {
        "type": "tag",
        "begin": begin,
        "content": {"type": "json_schema", "json_schema": arguments_schema(tool)},
        "end": end,
    }


def json_call_tag(tool: FunctionTool, *, begin: str = "", end: str = "", arguments_key: str = "arguments") -> Format:
    """A call written as the JSON object `{"name": ..., "arguments": ...}` between two texts."""
    return call_tag(tool, f'{begin}{{"name": {json.dumps(tool.name)}, "{arguments_key}": ', "}" + end)


WriteValue = Callable[[str, object], Format]  # name and schema of one argument, to its format with the name
_OF_PLAIN_OBJECTS = frozenset(
    ("type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$id", "$defs")
)


def named_values_format(tool: FunctionTool, write: WriteValue, any_name: WriteValue, whole: Format) -> Format:
    """The arguments one by one, in the order of the schema, with commas between.

    `any_name`: one that the schema does not name, where it names none. `whole`: another way of writing all of them, for
    schemas that say more than what each argument is.
    """
    root = tool.parameters or {"properties": {}, "additionalProperties": False}
    properties, required = root.get("properties", {}), root.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list) or root.keys() - _OF_PLAIN_OBJECTS:
        return whole
    if not all(name in properties for name in required):
        return whole
    if not properties and root.get("additionalProperties", True) is not False:
        one = any_name("", root.get("additionalProperties", True))
        return _optional(_sequence(one, {"type": "star", "content": _sequence(_text(", "), one)}))
    written = [(write(name, _standing_alone(root, name)), name in required) for name in properties]
    options: list[Format] = []
    for index, (one, is_required) in enumerate(written):
        options.append(_sequence(one, *(_after_comma(*other) for other in written[index + 1 :])))
        if is_required:
            break
    if not options:
        return _text("")
    either: Format = {"type": "or", "elements": options}
    return either if any(is_required for _, is_required in written) else _optional(either)


def _standing_alone(root: dict[str, object], name: str) -> object:
    """The schema of one property, with what it may refer to."""
    properties = root["properties"]
    schema = properties[name] if isinstance(properties, dict) else {}
    if '"$ref"' not in json.dumps(schema):
        return schema
    pointer = quote(name.replace("~", "~0").replace("/", "~1"))
    return {"$ref": f"arguments#/properties/{pointer}", "$defs": {"arguments": {**root, "$id": "arguments"}}}


def _after_comma(one: Format, is_required: bool) -> Format:
    following = _sequence(_text(", "), one)
    return following if is_required else _optional(following)


def _sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def _optional(content: Format) -> Format:
    return {"type": "optional", "content": content}


def _text(value: str) -> Format:
    return {"type": "const_string", "value": value}
