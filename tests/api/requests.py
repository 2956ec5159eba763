"""Builds bodies of requests, and reads answers."""

import json
import time
from collections.abc import Callable

import httpx

Json = dict[str, object]


def chat(said: str, **fields: object) -> Json:
    return {"model": "parrot", "messages": [{"role": "user", "content": said}], **fields}


# requests that need a model of texts
TEXT_REQUESTS: list[tuple[str, Json]] = [
    ("/v1/chat/completions", chat("Hi")),
    ("/v1/completions", {"prompt": "Hi"}),
    ("/v1/responses", {"input": "Hi"}),
    ("/v1/messages", chat("Hi", max_tokens=3)),
    ("/v1/embeddings", {"input": "Hi"}),
    ("/v1/rerank", {"query": "Hi", "documents": ["Ho"]}),
]


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


def read_events(response: httpx.Response) -> list[str]:
    """Returns the data of each server-sent event of the response."""
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = response.text.split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") for frame in frames)
    return [frame.removeprefix("data: ") for frame in frames]


def join_content(events: list[str]) -> str:
    """Joins the texts of the chunks of a chat with one choice."""
    choices = [json.loads(event)["choices"][0] for event in events if event != "[DONE]"]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def sum_metric(exposition: str, name: str) -> float:
    """Returns the sum of a metric over all label values."""
    values = [
        float(line.rsplit(" ", 1)[1])
        for line in exposition.splitlines()
        if line.startswith(name + "{")
    ]
    assert values, f"no metric {name}"
    return sum(values)


def read_error(response: httpx.Response) -> dict[str, str]:
    error: dict[str, str] = json.loads(response.text)["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error
