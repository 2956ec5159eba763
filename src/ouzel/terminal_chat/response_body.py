"""Turns the request of a chat completion into a request of the Responses API.

A chat holds its messages in one form. An answer that the Responses API gave has its items in the
field `items` of its message, because the items tell more than the message.
"""

from collections.abc import Mapping, Sequence

ITEMS = "items"
_LEFT_OUT = ("messages", "tools", "response_format")


def make_response_body(
    chat_body: Mapping[str, object], mcp_entries: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    """Returns a request that the server does not store: it has all items of the conversation."""
    body = {name: value for name, value in chat_body.items() if name not in _LEFT_OUT}
    messages, tools = chat_body["messages"], chat_body.get("tools", [])
    response_format = chat_body.get("response_format")
    assert isinstance(messages, Sequence) and isinstance(tools, list)
    body["input"] = [item for message in messages for item in _list_items(message)]
    body["tools"] = [*map(_flatten_tool, tools), *mcp_entries]
    if isinstance(response_format, dict):
        body["text"] = {"format": {"type": "json_schema", **response_format["json_schema"]}}
    return {**body, "store": False}


def strip_items(message: Mapping[str, object]) -> dict[str, object]:
    """Returns a message as the API of chats takes it."""
    return {name: value for name, value in message.items() if name != ITEMS}


def _list_items(message: Mapping[str, object]) -> list[object]:
    items = message.get(ITEMS)
    if isinstance(items, list):
        return items
    content = message.get("content")
    if message["role"] == "tool":
        call_id = message.get("tool_call_id")
        return [{"type": "function_call_output", "call_id": call_id, "output": content}]
    calls = message.get("tool_calls")
    listed: list[object] = []
    if content or not calls:
        parts = [_make_part(part) for part in content] if isinstance(content, list) else content
        listed.append({"role": message["role"], "content": parts or ""})
    if isinstance(calls, list):
        listed += [
            {"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls
        ]
    return listed


def _make_part(part: Mapping[str, object]) -> Mapping[str, object]:
    image = part.get("image_url")
    if part.get("type") == "image_url":
        url = image["url"] if isinstance(image, dict) else image
        return {"type": "input_image", "image_url": url}
    return {"type": "input_text", "text": part.get("text", "")}


def _flatten_tool(tool: Mapping[str, object]) -> object:
    function = tool.get("function")
    return {"type": "function", **function} if isinstance(function, dict) else tool
