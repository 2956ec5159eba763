"""Reads the lines and events of a streamed answer."""

import json
from typing import Any  # JSON

import httpx

Json = dict[str, Any]


def read_data_lines(response: httpx.Response) -> list[Any]:
    """Returns the JSON of each `data:` line, and the text "[DONE]" unchanged."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [
        line.removeprefix("data: ")
        for line in response.text.splitlines()
        if line.startswith("data: ")
    ]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def read_chunks(response: httpx.Response) -> list[Json]:
    *chunks, done = read_data_lines(response)
    assert done == "[DONE]"
    return chunks


def read_json_lines(response: httpx.Response) -> list[Json]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/jsonlines"
    return [json.loads(line) for line in response.text.splitlines()]


def merge_repeated(names: list[str]) -> list[str]:
    """Replaces equal neighbours in a list of names by one of them."""
    return [name for before, name in zip(["", *names], names, strict=False) if name != before]
