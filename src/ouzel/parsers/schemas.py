"""What the formats need to know of a tool's JSON schema."""

import json

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
