"""The field `tools` of a response: its schema, its decoding, and its form in the response object.

Tools of unknown types are accepted, left out of the prompt, and repeated as the client sent them.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.wire.decode import decode_object
from ouzel.wire.tools import MAX_TOOLS, ListedTool

JsonObject = dict[str, object]

_STRING = {"type": "string"}
_NAME = {"type": "string", "minLength": 1, "maxLength": 128}
_SYNTAX = {"enum": ["lark", "regex"]}


def _object(kind: str, required: tuple[str, ...], **properties: object) -> JsonObject:
    return {
        "type": "object",
        "required": ["type", *required],
        "properties": {
            "type": {"enum": [kind]},
            "description": {"type": ["string", "null"]},
            **properties,
        },
    }


_FUNCTION = _object(
    "function",
    (),
    name=_NAME,
    parameters={"type": ["object", "null"]},
    strict={"type": ["boolean", "null"]},
)
_FORMATS = [
    _object("text", ()),
    _object("grammar", ("syntax", "definition"), syntax=_SYNTAX, definition=_STRING),
    {"type": "null"},
]
_CUSTOM = _object("custom", (), name=_NAME, format={"anyOf": _FORMATS})
_NAMESPACE = _object(
    "namespace",
    ("name", "tools"),
    name=_NAME,
    tools={"type": "array", "items": {"anyOf": [_FUNCTION, _CUSTOM]}},
)
_OTHER = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string", "not": {"enum": [*ListedTool.known_types]}}},
    "description": "A tool that a server runs: left out or refused (--unknown-tools).",
}

ListedTools = Annotated[
    list[JsonObject],
    Meta(
        max_length=MAX_TOOLS,
        description="Tools that the model may call: functions, custom tools with a text, "
        "namespaces of both.",
        extra_json_schema={"items": {"anyOf": [_FUNCTION, _CUSTOM, _NAMESPACE, _OTHER]}},
    ),
]


class _Tools(msgspec.Struct):
    tools: list[ListedTool]


def decode_tools(tools: list[JsonObject]) -> list[ListedTool]:
    """Decodes the tools; a tool of an unknown type keeps its type only. Raises InvalidRequest."""
    return decode_object({"tools": [_reduce_unknown(tool) for tool in tools]}, _Tools).tools


def _reduce_unknown(tool: JsonObject) -> Mapping[str, object]:
    kind = tool.get("type")
    return {"type": kind} if isinstance(kind, str) and kind not in ListedTool.known_types else tool


def shown_tool(tool: JsonObject) -> JsonObject:
    """Returns the tool as the response object repeats it.

    A function or custom tool in the form of the chat API is converted to the form of the Responses
    API. A tool of an unknown type gets `left_out`, so that its client sees that it was not used.
    """
    kind = str(tool["type"])
    if kind not in ListedTool.known_types:
        return {**tool, "left_out": True}
    nested = tool.get(kind)
    fields = tool
    if kind in ("function", "custom") and isinstance(nested, dict):
        fields = {"type": kind, **nested}
    if kind != "function":
        if "format" not in fields:
            return fields
        return {**fields, "format": _shown_format(fields["format"])}
    own = {"type": kind, "name": None, "description": None, "parameters": None, **fields}
    return {**own, "strict": own.get("strict") or False}


def _shown_format(format: object) -> object:
    """Returns the format of a custom tool in the form of the Responses API.

    There, the fields of a grammar are beside `type`; the chat API has them in an inner object.
    """
    grammar = format.get("grammar") if isinstance(format, dict) else None
    return {"type": "grammar", **grammar} if isinstance(grammar, dict) else format
