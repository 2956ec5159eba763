"""Reads the tools that an MCP server lists, and the results of calls, as text for the model."""

import json
import re
from typing import Any  # contents of messages

from ouzel.hosted_tools.mcp.records import McpResult, McpTool

# MCP recommends fewer characters; other servers have names with a path or a prefix
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_MAX_DESCRIPTION = 10_000  # characters
_MAX_SCHEMA = 100_000  # characters of JSON
_WRITTEN_BLOCKS = ("text", "resource", "resource_link")


# The fields of a tool that are read; all others are dropped, such as the schema of its results.
_TEXTS_OF_TOOLS = ("name", "title", "description")


def repair_tools(result: dict[str, Any]) -> None:
    """Repairs the list of tools in a result as it was sent; other results stay.

    Tools without a name are dropped. A schema that does not describe an object does so afterwards.
    """
    tools = result.get("tools")
    if isinstance(tools, list):
        result["tools"] = [
            _repair_tool(tool)
            for tool in tools
            if isinstance(tool, dict) and isinstance(tool.get("name"), str)
        ]


def _repair_tool(tool: dict[str, Any]) -> dict[str, Any]:
    repaired = {name: tool[name] for name in _TEXTS_OF_TOOLS if isinstance(tool.get(name), str)}
    repaired["inputSchema"] = _repair_schema(tool.get("inputSchema"))
    if isinstance(annotations := tool.get("annotations"), dict):
        repaired["annotations"] = {
            name: value
            for name, value in annotations.items()
            if isinstance(value, bool) or (name == "title" and isinstance(value, str))
        }
    return repaired


def _repair_schema(schema: object) -> dict[str, Any]:
    """Returns a schema of objects, whose outermost keywords have values as MCP defines them."""
    repaired: dict[str, Any] = dict(schema) if isinstance(schema, dict) else {}
    repaired["type"] = "object"
    if not isinstance(repaired.get("$schema", ""), str):
        del repaired["$schema"]
    if "properties" in repaired:
        properties = repaired["properties"]
        named = properties.items() if isinstance(properties, dict) else ()
        repaired["properties"] = {
            name: value if isinstance(value, dict) else {} for name, value in named
        }
    if "required" in repaired:
        required = repaired["required"]
        names = required if isinstance(required, list) else []
        repaired["required"] = [name for name in names if isinstance(name, str)]
    return repaired


class InvalidTool(ValueError):
    """A tool that cannot be offered; the message is a predicate."""


def is_function_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def read_tool(tool: Any) -> McpTool:
    """Reads a tool of the library. Raises InvalidTool."""
    if not is_function_name(tool.name):
        raise InvalidTool(f"has a name that no function may have: {tool.name[:128]!r}")
    schema = tool.input_schema
    num_chars = len(json.dumps(schema))
    if num_chars > _MAX_SCHEMA:
        raise InvalidTool(f"{tool.name!r} has a schema of {num_chars} characters")
    description = None if tool.description is None else tool.description[:_MAX_DESCRIPTION]
    hints = tool.annotations
    annotations = None if hints is None else hints.model_dump(by_alias=True, exclude_none=True)
    num_chars += len(tool.name) + len(description or "") + len(json.dumps(annotations))
    return McpTool(tool.name, description, schema, annotations, num_chars)


def write_result(result: Any) -> McpResult:
    """Returns a result of the library as text for the model."""
    text = "\n".join(map(_write_block, result.content))
    has_text = any(block.type in _WRITTEN_BLOCKS for block in result.content)
    if result.structured_content is not None and not has_text:
        structured = json.dumps(result.structured_content, ensure_ascii=False)
        text = f"{text}\n{structured}" if text else structured
    return McpResult(text, bool(result.is_error))


def _write_block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource" if hasattr(block.resource, "text"):
            return str(block.resource.text)
        case "resource":
            return f"[a file: {block.resource.uri}, {block.resource.mime_type}]"
        case "resource_link":
            return f"[a link to {block.name}: {block.uri}]"
        case kind:
            return f"[{kind}, {block.mime_type}: the model reads text only]"
