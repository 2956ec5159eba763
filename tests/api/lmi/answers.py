"""Answers of LMI read back."""

import json
from typing import Any  # JSON

import httpx

PREFIX = "Input Parsing failed. Ensure that the request payload is valid. "


def read_lines(response: httpx.Response) -> list[Any]:
    """The objects of a stream, as a client splits it that knows nothing but the media type."""
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/jsonlines"
    lines = response.text.split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


def read_refusal(response: httpx.Response) -> str:
    """What LMI's model handler says."""
    body = response.json()
    assert response.status_code == 424, body
    assert body.keys() == {"error", "code"}
    assert body["code"] == 424
    message: str = body["error"]
    return message
