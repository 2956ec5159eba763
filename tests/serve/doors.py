"""Describes each endpoint that streams text: its request, and the text in its events."""

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import httpx

from tests.serve.answers import Json


@dataclass(frozen=True)
class Door:
    path: str
    body: Callable[[str, int], Json]  # arguments: a question, the number of tokens
    text: Callable[[Json], str | None]  # argument: an event
    is_last: Callable[[Json], bool]  # True: the event has the reason of the end


def _messages(question: str, max_tokens: int, **fields: object) -> Json:
    return {
        "model": "ouzel-demo",
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        **fields,
    }


def _completion(question: str, max_tokens: int) -> Json:
    return {
        "model": "ouzel-demo",
        "prompt": question,
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
    }


def _response(question: str, max_tokens: int) -> Json:
    given = {"model": "ouzel-demo", "input": question, "max_output_tokens": max_tokens}
    return given | {"temperature": 0, "stream": True, "store": False}


def _ollama(question: str, max_tokens: int) -> Json:
    return {"model": "ouzel-demo", "options": {"temperature": 0, "num_predict": max_tokens}}


def _inputs(question: str, max_tokens: int) -> Json:
    return {
        "inputs": question,
        "parameters": {"max_new_tokens": max_tokens, "do_sample": False},
        "stream": True,
    }


def _choice(event: Json) -> Json:
    choices: list[Json] = event.get("choices") or [{}]
    return choices[0]


DOORS = (
    Door(
        "/v1/chat/completions",
        _messages,
        lambda event: _choice(event).get("delta", {}).get("content"),
        lambda event: bool(_choice(event).get("finish_reason")),
    ),
    Door(
        "/v1/completions",
        _completion,
        lambda event: _choice(event).get("text"),
        lambda event: bool(_choice(event).get("finish_reason")),
    ),
    Door(
        "/v1/responses",
        _response,
        lambda event: event["delta"] if event["type"] == "response.output_text.delta" else None,
        lambda event: event["type"] in ("response.completed", "response.incomplete"),
    ),
    Door(
        "/v1/messages",
        _messages,
        lambda event: event["delta"]["text"] if event["type"] == "content_block_delta" else None,
        lambda event: event["type"] == "message_stop",
    ),
    Door(
        "/api/chat",
        lambda question, n: (
            _ollama(question, n) | {"messages": [{"role": "user", "content": question}]}
        ),
        lambda event: event["message"]["content"],
        lambda event: bool(event["done"]),
    ),
    Door(
        "/api/generate",
        lambda question, n: _ollama(question, n) | {"prompt": question},
        lambda event: event["response"],
        lambda event: bool(event["done"]),
    ),
    Door(
        "/invocations",
        _inputs,
        lambda event: event["token"]["text"],
        lambda event: "generated_text" in event,
    ),
)


async def pieces(
    http: httpx.AsyncClient, door: Door, question: str, max_tokens: int
) -> AsyncGenerator[str, None]:
    """Yields the pieces of the text. Fails if no event has the reason of the end."""
    has_ended = False
    async with http.stream("POST", door.path, json=door.body(question, max_tokens)) as response:
        assert response.status_code == 200, (door.path, await response.aread())
        async for line in response.aiter_lines():
            data = line.removeprefix("data:").strip()
            if not data.startswith("{"):
                continue
            event = json.loads(data)
            has_ended = has_ended or door.is_last(event)
            if text := door.text(event):
                yield text
    assert has_ended, door.path
