"""Converts tool calls and their outputs in the input to chat messages.

The messages have the tool names that the model reads (`wire.offered_tools`).
"""

from ouzel.generation import ReadableMedia
from ouzel.responses.hosted.item_base import ToolExchange
from ouzel.responses.item_fields import (
    MEDIA,
    Message,
    invalid_value,
    read_content,
    require_name,
    require_string,
)
from ouzel.wire.offered_tools import ClientName, ToolNames

CALL_TYPES = ("function_call", "custom_tool_call")
OUTPUT_TYPES = ("function_call_output", "custom_tool_call_output")
# Types of the items that tools leave in a conversation when a server runs them, such as web search.
HOSTED_TYPES = (
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
)


class CallHistory:
    def __init__(self, tool_names: ToolNames, *, readable: ReadableMedia) -> None:
        """`readable` tells whether the model reads images: then outputs may have them."""
        self._tool_names = tool_names
        self._readable = readable
        # Call id -> the type of the call and the tool name that the model reads.
        self._called: dict[str, tuple[str, str]] = {}
        # Ids of calls without an output. Answered ids may return: some models number their calls
        # from 0 in each turn.
        self._unanswered: set[str] = set()
        self._num_exchanges = 0

    def call(self, item: Message, path: str) -> Message:
        """Converts a call item to an entry of `tool_calls` of an assistant message.

        `path` names the item in errors. Raises InvalidRequest.
        """
        kind, call_id = str(item["type"]), require_name(item, "call_id", path)
        name, namespace = require_name(item, "name", path), item.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise invalid_value(f"{path}.namespace", "a string", namespace)
        text = require_string(item, "input" if kind == "custom_tool_call" else "arguments", path)
        if call_id in self._unanswered:
            raise invalid_value(
                f"{path}.call_id", "unique among the calls without an output", call_id
            )
        model_name = self._tool_names.for_model(ClientName(name, namespace))
        self._called[call_id] = (kind, model_name)
        self._unanswered.add(call_id)
        if kind == "custom_tool_call":
            return {"id": call_id, "type": "custom", "custom": {"name": model_name, "input": text}}
        return {
            "id": call_id,
            "type": "function",
            "function": {"name": model_name, "arguments": text},
        }

    def exchange(self, exchange: ToolExchange) -> tuple[Message, Message]:
        """Converts a call that a server has run to an entry of `tool_calls` and its output."""
        name = self._tool_names.for_model(ClientName(exchange.name, exchange.namespace))
        self._num_exchanges += 1
        call_id = f"call_{self._num_exchanges}"
        call: Message = {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": exchange.arguments},
        }
        return call, {
            "role": "tool",
            "tool_call_id": call_id,
            "name": name,
            "content": exchange.output,
        }

    def output(self, item: Message, path: str) -> Message:
        """Converts the output of a call to a message with the role `tool`.

        Raises InvalidRequest, also if no call with this `call_id` stands before the output.
        """
        call_id = require_name(item, "call_id", path)
        kind = str(item["type"]).removesuffix("_output")
        called, name = self._called.get(call_id, ("", ""))
        if called != kind:
            raise invalid_value(f"{path}.call_id", f"the call_id of a {kind} before it", call_id)
        output = item.get("output")
        kinds = ("input_text", *MEDIA)
        content: object = ""
        if output != []:
            content = read_content(output, f"{path}.output", kinds, readable=self._readable)
        self._unanswered.discard(call_id)
        return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}

    def forget(self) -> None:
        """Forgets all calls, because no output of these calls may follow."""
        self._called.clear()
        self._unanswered.clear()
