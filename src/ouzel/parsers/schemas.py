"""What the formats need to know of a tool's JSON schema."""

from ouzel.types import FunctionTool


def arguments_schema(tool: FunctionTool) -> dict[str, object]:
    """Of the arguments as one JSON object; a tool without parameters takes none."""
    return tool.parameters or {"type": "object", "properties": {}, "additionalProperties": False}
