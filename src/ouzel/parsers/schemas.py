"""Makes the formats of tool calls from the JSON schema of a tool."""

import json
from collections.abc import Callable, Sequence
from urllib.parse import quote

from ouzel.parsers.base import Format
from ouzel.types.tools import CUSTOM_ARGUMENT, FunctionTool, ParameterMarks, TextGrammar


def own_schema(tool: FunctionTool) -> dict[str, object]:
    """Returns the schema of the arguments object; a tool without parameters takes no arguments."""
    return tool.parameters or {"type": "object", "properties": {}, "additionalProperties": False}


def arguments_schema(tool: FunctionTool) -> dict[str, object]:
    """Returns the schema of the arguments object in the form for a format, with the mark of a
    strict tool.
    """
    schema = own_schema(tool)
    return {"strict": True, "schema": schema} if tool.strict else schema


def arguments_format(tool: FunctionTool) -> Format:
    """Returns the format of the arguments as one JSON object."""
    if tool.text_grammar is None:
        return {"type": "json_schema", "json_schema": arguments_schema(tool)}
    return _sequence(_text(f'{{"{CUSTOM_ARGUMENT}": '), text_format(tool.text_grammar), _text("}"))


def text_format(grammar: TextGrammar) -> Format:
    return {"type": "free_text", "syntax": grammar.syntax, "definition": grammar.definition}


def call_tag(
    tool: FunctionTool, begin: str, end: str, *, marks: ParameterMarks | None = None
) -> Format:
    """Returns the format of a call: the arguments between two texts, as JSON or between parameter
    marks.
    """
    content = arguments_format(tool)
    if marks is not None and tool.text_grammar is not None:
        content = {**text_format(tool.text_grammar), "style": marks.style, "name": CUSTOM_ARGUMENT}
    elif marks is not None:
        content = {**content, "style": marks.style}
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def json_call_tag(
    tool: FunctionTool, *, begin: str = "", end: str = "", arguments_key: str = "arguments"
) -> Format:
    """Returns the format of a call as the object `{"name": ..., "arguments": ...}` between two
    texts.
    """
    opening = f'{begin}{{"name": {json.dumps(tool.name)}, "{arguments_key}": '
    return call_tag(tool, opening, "}" + end)


# Keywords that say nothing about the relations between properties.
_PLAIN_OBJECT_KEYWORDS = frozenset({"type", "properties", "required", "additionalProperties"}) | {
    "title",
    "description",
    "$schema",
    "$id",
    "$defs",
}


def json_format(schema: object, is_strict: bool = False) -> Format:
    return {"type": "json_schema", "json_schema": schema, "strict": is_strict}


def named_values_format(
    tool: FunctionTool,
    *,
    sign: str,
    comma: str,
    whole: Format,
    value_format: Callable[[object, bool], Format] = json_format,
) -> Format:
    """Returns the format of named arguments in the schema's order: a name, a sign and a value each.

    `comma` stands between arguments. `whole` is the format of all arguments together, used if the
    schema restricts more than single arguments. `value_format` makes the format of a value from its
    schema and from whether the schema is strict.
    """
    if tool.text_grammar is not None:
        return _sequence(_text(CUSTOM_ARGUMENT + sign), text_format(tool.text_grammar))
    root = tool.parameters or {"properties": {}, "additionalProperties": False}
    properties, required = root.get("properties", {}), root.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return whole
    if root.keys() - _PLAIN_OBJECT_KEYWORDS:
        return whole
    if not all(name in properties for name in required):
        return whole
    if not properties and root.get("additionalProperties", True) is not False:
        name: Format = {"type": "regex", "pattern": "[a-zA-Z_][a-zA-Z0-9_]*" + sign}
        one = _sequence(name, json_format(root.get("additionalProperties", True), tool.strict))
        return _optional(_sequence(one, {"type": "star", "content": _sequence(_text(comma), one)}))
    values = {
        name: value_format(_standalone_schema(root, name), tool.strict) for name in properties
    }
    items = [
        (_sequence(_text(name + sign), value), name in required) for name, value in values.items()
    ]
    return _list_format(items, comma)


def _list_format(items: Sequence[tuple[Format, bool]], comma: str) -> Format:
    """Returns the format of a list with commas, from (format, is_required) pairs in this order."""
    options: list[Format] = []
    for index, (one, is_required) in enumerate(items):
        options.append(
            _sequence(one, *(_after_comma(comma, *other) for other in items[index + 1 :]))
        )
        if is_required:
            break
    if not options:
        return _text("")
    either: Format = {"type": "or", "elements": options}
    return either if any(is_required for _, is_required in items) else _optional(either)


def _standalone_schema(root: dict[str, object], name: str) -> object:
    """Returns the schema of one property, together with the definitions that it may refer to."""
    properties = root["properties"]
    schema = properties[name] if isinstance(properties, dict) else {}
    if '"$ref"' not in json.dumps(schema):
        return schema
    pointer = quote(name.replace("~", "~0").replace("/", "~1"))
    return {
        "$ref": f"arguments#/properties/{pointer}",
        "$defs": {"arguments": {**root, "$id": "arguments"}},
    }


def _after_comma(comma: str, one: Format, is_required: bool) -> Format:
    following = _sequence(_text(comma), one)
    return following if is_required else _optional(following)


def _sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def _optional(content: Format) -> Format:
    return {"type": "optional", "content": content}


def _text(value: str) -> Format:
    return {"type": "const_string", "value": value}
