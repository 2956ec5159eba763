"""Builds bodies of messages, reads their answers and shows the engine's prompts.

Events are compared with the order that Anthropic documents.
"""

import json
from typing import Any  # JSON

import httpx

from tests.api.byte_tokens import START
from tests.api.engines import received_prompts

Json = dict[str, Any]
PATH = "/v1/messages"
SPECIAL_TEXTS = {START: "<|im_start|>", START + 1: "<|im_end|>"}
LOOK = {
    "name": "look",
    "description": "Looks somewhere.",
    "input_schema": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    },
}
REST = {"name": "rest", "type": "custom", "input_schema": {"type": "object", "properties": {}}}
CALL = '<tool_call>\n{"name": "look", "arguments": {"place": "up"}}\n</tool_call>'
OTHER_CALL = '<tool_call>\n{"name": "rest", "arguments": {}}\n</tool_call>'
SAYINGS = {
    "text": "Hello, wörld 🦉",
    "thinking": "<think>let me see</think>It is an owl.",
    "only thinking": "<think>let me see</think>",
    "call": CALL,
    "calls": f"{CALL}\n{OTHER_CALL}",
    "thinking, text and calls": f"<think>let me see</think>I look.\n{CALL}\n{OTHER_CALL}",
    "nothing": "",
    "whitespace": " \n",
}


_CALLS = ("tool_use", "mcp_tool_use", "server_tool_use")


def build_request(said: str, **fields: object) -> Json:
    return {
        "model": "parrot",
        "max_tokens": 400,
        "messages": [{"role": "user", "content": said}],
        **fields,
    }


def read_error(response: httpx.Response) -> tuple[int, str, str]:
    """Checks the form of an error; returns its status, type and message."""
    body = response.json()
    assert body.keys() == {"type", "error", "request_id"} and body["type"] == "error"
    assert body["error"].keys() == {"type", "message"}
    assert body["request_id"] == response.headers["request-id"]
    return response.status_code, body["error"]["type"], body["error"]["message"]


def read_events(response: httpx.Response) -> list[Json]:
    """Returns the events of a stream; checks that each event is named after its type."""
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    events = []
    frames = response.text.split("\n\n")
    assert frames.pop() == ""
    for frame in frames:
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def fold_events(events: list[Json]) -> Json:
    """Folds the events into a message; checks their order: blocks never interleave."""
    said = [event for event in events if event["type"] != "ping"]
    start, *inner, delta, stop = said
    assert (start["type"], delta["type"], stop) == (
        "message_start",
        "message_delta",
        {"type": "message_stop"},
    )
    message = start["message"]
    assert (message["content"], message["stop_reason"], message["stop_sequence"]) == (
        [],
        None,
        None,
    )
    is_open, written = False, ""
    for event in inner:
        assert event["index"] == len(message["content"]) - is_open
        if event["type"] == "content_block_start":
            assert not is_open
            is_open, written = True, ""
            message["content"].append(event["content_block"])
        else:
            assert is_open
            written += _add(message["content"][-1], event)
            is_open = event["type"] != "content_block_stop"
        if not is_open and message["content"][-1]["type"] in _CALLS:
            message["content"][-1]["input"] = _parse_input(written)
    assert not is_open
    whole: Json = message | delta["delta"] | {"usage": message["usage"] | delta["usage"]}
    return whole


def _add(block: Json, event: Json) -> str:
    """Adds the delta of an event to its block; returns the piece of a call's input, as JSON."""
    delta = event.get("delta", {})
    kinds = {
        "text": ["text_delta"],
        "thinking": ["thinking_delta", "signature_delta"],
        "tool_use": ["input_json_delta"],
        "mcp_tool_use": ["input_json_delta"],
        "server_tool_use": ["input_json_delta"],
    }
    assert event["type"] == "content_block_stop" or delta["type"] in kinds[block["type"]]
    for key in ("text", "thinking", "signature"):
        if key in delta:
            block[key] += delta[key]
    return str(delta.get("partial_json", ""))


def _parse_input(written: str) -> Json:
    try:
        parsed: Json = json.loads(written or "{}")
    except ValueError:
        return {"INVALID_JSON": written}
    return parsed


def last_prompt() -> str:
    pieces = [
        SPECIAL_TEXTS.get(token_id, "").encode() or bytes([token_id])
        for token_id in received_prompts[-1]
    ]
    return b"".join(pieces).decode()
