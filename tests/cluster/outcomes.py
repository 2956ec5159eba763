"""Reduces a server's answer to the parts that equal servers share.

Ids, times, counts of cached tokens and the cuts of a text are left out.
"""

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
    # proposals come from earlier requests
    *(
        "accepted_prediction_tokens",
        "rejected_prediction_tokens",
    ),
}
_PIECES = ("delta", "content", "text", "response", "reasoning_content", "reasoning")


def normalise(value: Any) -> Any:
    """Replaces values that change from answer to answer with a mark."""
    if isinstance(value, dict):
        return {
            key: "*" if key in _CHANGING and each is not None else normalise(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [normalise(each) for each in value]
    if isinstance(value, str):
        return _HEX.sub("*", _ID.sub("*", value))
    return value


def read_outcome(answer: httpx.Response) -> Any:
    """Returns status, type and body of a whole answer."""
    try:
        body = normalise(answer.json())
    except ValueError:
        body = normalise(answer.text)
    return [answer.status_code, answer.headers.get("content-type"), body]


def read_stream_outcome(answer: httpx.Response) -> Any:
    """Returns status, type, kinds of events in their order, the whole text, and the last event."""
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
        payloads[-1:] if payloads and not payloads[-1].startswith("{") else normalise(events[-1:]),
    ]


def _texts(event: Any) -> Iterable[str]:
    """Yields the pieces of text of an event; events that repeat the whole text give none."""
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
