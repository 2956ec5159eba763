"""What a server answered, without what differs between equal servers: ids, times, what was cached, how text was cut."""

import json
import re
from collections.abc import Iterable
from typing import Any  # JSON

import httpx

_ID = re.compile(
    r"\b(?:resp|conv|msg|rs|fc|cmpl|chatcmpl|call|toolu|item|ctc|cmp)_?-?[0-9a-zA-Z]{16,}\b"
)
_HEX = re.compile(
    r"\b[0-9a-f]{24,64}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|127\.0\.0\.1:[0-9]+"
)
_CHANGING = {
    *(
        "created",
        "created_at",
        "completed_at",
        "updated_at",
        "obfuscation",
        "encrypted_content",
        "timestamp",
    ),
    *(
        "total_duration",
        "load_duration",
        "prompt_eval_duration",
        "eval_duration",
        "modified_at",
        "expires_at",
    ),
    *("cached_tokens", "cache_read_input_tokens", "base_urls", "seed"),
    *(
        "accepted_prediction_tokens",
        "rejected_prediction_tokens",
    ),  # what was asked before is where guesses come from
}
_PIECES = ("delta", "content", "text", "response", "reasoning_content", "reasoning")


def normal(value: Any) -> Any:
    """Puts a mark in the place of what is never the same."""
    if isinstance(value, dict):
        return {
            key: "*" if key in _CHANGING and each is not None else normal(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [normal(each) for each in value]
    if isinstance(value, str):
        return _HEX.sub("*", _ID.sub("*", value))
    return value


def outcome(answer: httpx.Response) -> Any:
    """Status, type and body of a whole answer."""
    try:
        body = normal(answer.json())
    except ValueError:
        body = normal(answer.text)
    return [answer.status_code, answer.headers.get("content-type"), body]


def stream_outcome(answer: httpx.Response) -> Any:
    """Status, type, the kinds of events in their order, the text they come to, and the last event of all."""
    lines = [
        line for line in answer.text.splitlines() if line and not line.startswith((":", "event:"))
    ]
    payloads = [line.removeprefix("data: ") for line in lines]
    events = [json.loads(payload) for payload in payloads if payload.startswith("{")]
    kinds = [str(event.get("type") or event.get("object") or "line") for event in events]
    return [
        answer.status_code,
        answer.headers.get("content-type"),
        list(dict.fromkeys(kinds)),
        "".join(piece for event in events for piece in _texts(event)),
        payloads[-1:] if payloads and not payloads[-1].startswith("{") else normal(events[-1:]),
    ]


def _texts(event: Any) -> Iterable[str]:
    """The pieces of text in an event that is one of many, and not those of an object that sums them up."""
    kind = str(event.get("type", ""))
    if kind.endswith((".done", ".completed", ".incomplete", ".added", ".created", ".in_progress")):
        return
    for key, value in event.items():
        if isinstance(value, str) and key in _PIECES:
            yield value
        elif isinstance(value, dict) and key in ("delta", "message", "token"):
            yield from _texts(value)
        elif isinstance(value, list) and key == "choices":
            for each in value:
                yield from _texts(each)
