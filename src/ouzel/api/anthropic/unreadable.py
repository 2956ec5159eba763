"""Refuses blocks that this server cannot show to a model; errors name the path and the reason."""

from collections.abc import Iterator, Mapping

from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject
from ouzel.wire.validation_errors import show_value

_OF_SERVER_TOOL = "this server runs no such tool, leave the block out"
_REASONS: Mapping[str, str] = {
    "container_upload": "this server has no containers",
    "compaction": "only the server that wrote the summary can read it, send it as text",
    "browser_state": "this server has no browser tools",
    **dict.fromkeys(
        (
            "code_execution_tool_result",
            "bash_code_execution_tool_result",
            "text_editor_code_execution_tool_result",
            "tool_search_tool_result",
        ),
        _OF_SERVER_TOOL,
    ),
}
_NO_IMAGES = {"image": "this model reads no images"}


def refuse_unreadable(fields: JsonObject, *, supports_images: bool) -> None:
    """Raises InvalidRequest for the first such block of a parsed body."""
    reasons = _REASONS if supports_images else {**_REASONS, **_NO_IMAGES}
    for path, block in _blocks(fields):
        kind = block.get("type")
        if isinstance(kind, str) and kind in reasons:
            readable = "a text or an image" if supports_images else "a text"
            raise InvalidRequest(
                f"must be the type of {readable}, given {show_value(kind)}: {reasons[kind]}",
                field=f"{path}.type",
            )


def _blocks(fields: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yields the blocks of all messages, nested blocks included, with their paths."""
    messages = fields.get("messages")
    for position, message in enumerate(messages if isinstance(messages, list) else ()):
        for path, block in _content(message, f"messages[{position}]"):
            yield path, block
            yield from _content(block, path)


def _content(holder: object, path: str) -> Iterator[tuple[str, JsonObject]]:
    content = holder.get("content") if isinstance(holder, dict) else None
    for position, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict):
            yield f"{path}.content[{position}]", block
