"""Formats of calls are made of a tool's JSON schema."""

import json
from collections.abc import Callable, Sequence
from urllib.parse import quote

from ouzel.parsers.base import Format
from ouzel.types.tools import CUSTOM_ARGUMENT, FunctionTool, ParameterMarks, TextGrammar


def own_schema(tool: FunctionTool) -> dict[str, object]:
    """Returns the schema of all arguments; a tool without parameters takes none."""
    return tool.parameters or {"type": "object", "properties": {}, "additionalProperties": False}


def arguments_schema(tool: FunctionTool) -> dict[str, object]:
    """Returns the schema of all arguments as a format takes it."""
    schema = own_schema(tool)
    return {"strict": True, "schema": schema} if tool.strict else schema


def arguments_format(tool: FunctionTool) -> Format:
    """Returns the format of all arguments as one JSON object."""
    if tool.text_grammar is None:
        return {"type": "json_schema", "json_schema": arguments_schema(tool)}
    return _sequence(_text(f'{{"{CUSTOM_ARGUMENT}": '), text_format(tool.text_grammar), _text("}"))


def text_format(grammar: TextGrammar) -> Format:
    return {"type": "free_text", "syntax": grammar.syntax, "definition": grammar.definition}


def call_tag(
    tool: FunctionTool, begin: str, end: str, *, marks: ParameterMarks | None = None
) -> Format:
    """Returns the tool's arguments between two texts, as JSON or as parameters between marks."""
    content = arguments_format(tool)
    if marks is not None and tool.text_grammar is not None:
        content = {**text_format(tool.text_grammar), "style": marks.style, "name": CUSTOM_ARGUMENT}
    elif marks is not None:
        content = {**content, "style": marks.style}
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def json_call_tag(
    tool: FunctionTool, *, begin: str = "", end: str = "", arguments_key: str = "arguments"
) -> Format:
    """Returns a call as the JSON object `{"name": ..., "arguments": ...}` between two texts."""
    return call_tag(
        tool, f'{begin}{{"name": {json.dumps(tool.name)}, "{arguments_key}": ', "}" + end
    )


_OF_PLAIN_OBJECTS = frozenset(
    (
        "type",
        "properties",
        "required",
        "additionalProperties",
        "title",
        "description",
        "$schema",
        "$id",
        "$defs",
    )
)


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
    """Returns the arguments one by one, in the order of the schema: a name, a sign and a value, commas between.

    `whole` is another way of writing all of them, for schemas that say more than what each argument is.
    `value_format` takes a schema, and whether it is read strictly.
    """
    if tool.text_grammar is not None:
        return _sequence(_text(CUSTOM_ARGUMENT + sign), text_format(tool.text_grammar))
    root = tool.parameters or {"properties": {}, "additionalProperties": False}
    properties, required = root.get("properties", {}), root.get("required", [])
    if (
        not isinstance(properties, dict)
        or not isinstance(required, list)
        or root.keys() - _OF_PLAIN_OBJECTS
    ):
        return whole
    if not all(name in properties for name in required):
        return whole
    if not properties and root.get("additionalProperties", True) is not False:
        name: Format = {"type": "regex", "pattern": "[a-zA-Z_][a-zA-Z0-9_]*" + sign}
        one = _sequence(name, json_format(root.get("additionalProperties", True), tool.strict))
        return _optional(_sequence(one, {"type": "star", "content": _sequence(_text(comma), one)}))
    values = {name: value_format(_standing_alone(root, name), tool.strict) for name in properties}
    return _listed(
        [
            (_sequence(_text(name + sign), value), name in required)
            for name, value in values.items()
        ],
        comma,
    )


def _listed(written: Sequence[tuple[Format, bool]], comma: str) -> Format:
    """Returns a list in this order, with commas, of those that are required and any of the others."""
    options: list[Format] = []
    for index, (one, is_required) in enumerate(written):
        options.append(
            _sequence(one, *(_after_comma(comma, *other) for other in written[index + 1 :]))
        )
        if is_required:
            break
    if not options:
        return _text("")
    either: Format = {"type": "or", "elements": options}
    return either if any(is_required for _, is_required in written) else _optional(either)


def _standing_alone(root: dict[str, object], name: str) -> object:
    """Returns the schema of one property, with what it may refer to."""
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
