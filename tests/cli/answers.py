"""Streams put together, to compare them with whole answers."""

import json
from typing import Any  # JSON

import httpx

Json = dict[str, Any]

_UNLIKE = {"id", "created", "object", "model", "system_fingerprint"}  # of two answers, or not told twice


def chunks_of(response: httpx.Response) -> list[Json]:
    *frames, done, end = response.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def put_together(chunks: list[Json]) -> Json:
    """What all chunks add up to: text and lists are joined, later values count."""
    answer: Json = {}
    choices: dict[int, Json] = {}
    for chunk in chunks:
        for choice in chunk.pop("choices"):
            joined = choices.setdefault(choice["index"], {})
            _join(joined, {"message" if name == "delta" else name: value for name, value in choice.items()})
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
    """Without what differs by its nature, and without what is null or empty."""
    answer = {name: value for name, value in answer.items() if name not in _UNLIKE}
    substance: Json = json.loads(json.dumps(answer), object_hook=_without_nothings)
    return substance


def _without_nothings(given: Json) -> Json:
    return {name: value for name, value in given.items() if value not in (None, "", [], {})}
