"""Reads answers of LMI's profile."""

import json
from typing import Any  # JSON

import httpx

PREFIX = "Input Parsing failed. Ensure that the request payload is valid. "


def read_lines(response: httpx.Response) -> list[Any]:
    """Returns the objects of a stream of JSON lines, whose media type must be right."""
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/jsonlines"
    lines = response.text.split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


def read_refusal(response: httpx.Response) -> str:
    """Returns the message of an error in the form of LMI's model handler."""
    body = response.json()
    assert response.status_code == 424, body
    assert body.keys() == {"error", "code"}
    assert body["code"] == 424
    message: str = body["error"]
    return message
