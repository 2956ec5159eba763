"""Reads a JSON schema from a file and converts it to the field `response_format`."""

import re

import msgspec

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.user_file import read_bytes


def read_schema(path: str) -> dict[str, object]:
    """Returns the field `response_format`; the server checks the schema. Raises ChatError."""
    try:
        schema = msgspec.json.decode(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise ChatError(f"{harmless_line(path)}: must be JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ChatError(
            f"{harmless_line(path)}: must be an object that is a JSON schema, given another value"
        )
    title = schema.get("title")
    name = "answer"
    if isinstance(title, str) and title:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", title)[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
