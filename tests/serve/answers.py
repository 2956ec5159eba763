"""Streams put together, to compare them with whole answers."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any  # JSON

import httpx

Json = dict[str, Any]

# The engine measures how many proposed tokens pay, so their numbers vary.
_OF_GUESSES = ("accepted_prediction_tokens", "rejected_prediction_tokens")
# Fields that differ between two answers, or that a stream has only in its first chunk.
_UNLIKE = {
    "id",
    "created",
    "object",
    "model",
    "system_fingerprint",
}


def read_chunks(response: httpx.Response) -> list[Json]:
    *frames, done, end = response.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


@dataclass(frozen=True)
class Answered:
    body: Json
    whole: Json  # put together, when it was streamed
    chunks: list[Json]  # none when it was not


def ask_all(url: str, bodies: Sequence[Json], *, concurrency: int = 16) -> list[Answered]:
    """Sends chats, `concurrency` at a time; chats with `stream` get `include_usage` as well.

    A busy server that refuses a chat with 429 is asked again, as clients do.
    """

    async def ask(http: httpx.AsyncClient, body: Json, turns: asyncio.Semaphore) -> Answered:
        options = {"stream_options": {"include_usage": True}} if body.get("stream") else {}
        async with turns:
            while (
                response := await http.post("chat/completions", json=body | options)
            ).status_code == 429:
                await asyncio.sleep(float(response.headers["retry-after"]))
        assert response.status_code == 200, (response.text, body)
        if not options:
            return Answered(body, response.json(), [])
        return Answered(body, put_together(read_chunks(response)), read_chunks(response))

    async def run() -> list[Answered]:
        turns = asyncio.Semaphore(concurrency)
        async with httpx.AsyncClient(base_url=url, timeout=None) as http:
            return await asyncio.gather(*(ask(http, body, turns) for body in bodies))

    return asyncio.run(run())


def put_together(chunks: list[Json]) -> Json:
    """Joins chunks to an answer: appends text and lists, and replaces other values."""
    answer: Json = {}
    choices: dict[int, Json] = {}
    for chunk in chunks:
        for choice in chunk.pop("choices"):
            joined = choices.setdefault(choice["index"], {})
            _join(
                joined,
                {"message" if name == "delta" else name: value for name, value in choice.items()},
            )
        answer |= {name: value for name, value in chunk.items() if value is not None}
    return answer | {"choices": [choices[index] for index in sorted(choices)]}


def _join(joined: Json, piece: Json) -> None:
    for name, value in piece.items():
        match joined.get(name), value:
            case dict() as before, dict():
                _join(before, value)
            case str() as before, str():
                joined[name] = before + value
            case list() as before, list() if name == "tool_calls":
                joined[name] = _join_calls(before, value)
            case list() as before, list():
                joined[name] = [*before, *value]
            case before, _:
                joined[name] = before if value is None else value


def _join_calls(before: list[Json], pieces: list[Json]) -> list[Json]:
    calls = {call["index"]: call for call in before}
    for piece in pieces:
        _join(calls.setdefault(piece["index"], {}), piece)
    return [calls[index] for index in sorted(calls)]


def essence(answer: Json) -> Json:
    """Returns the answer without its own ids and times, and without null and empty values."""
    answer = {name: value for name, value in answer.items() if name not in _UNLIKE}
    told: Json = json.loads(json.dumps(answer), object_hook=_without_nothings)
    return told


def substance(answer: Answered) -> Json:
    """Returns the parts of the answer that a second answer to the same request shares."""
    shared = essence(answer.whole)
    shared["usage"].pop("prompt_tokens_details", None)
    for call in shared["choices"][0]["message"].get("tool_calls", []):
        call.pop("index", None)
        call.pop("id")
    return shared


def _without_nothings(given: Json) -> Json:
    return {
        name: value
        for name, value in given.items()
        if value not in (None, "", [], {}) and name not in _OF_GUESSES
    }
