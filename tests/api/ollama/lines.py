"""Builds bodies for Ollama's endpoints and reads their answers."""

import json
from typing import Any  # JSON

import httpx

from tests.api.engines import received_prompts

Json = dict[str, Any]
STATISTICS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def chat(said: str, **fields: object) -> Json:
    return {"model": "parrot", "messages": [{"role": "user", "content": said}], **fields}


def read_lines(response: httpx.Response) -> list[Json]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.text.endswith("\n")
    return [json.loads(line) for line in response.text.splitlines()]


def read_answer(response: httpx.Response) -> Json:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    answer: Json = response.json()
    return answer


def fold_lines(lines: list[Json]) -> Json:
    """Adds the texts and calls of all lines of a stream to its last line."""
    answer = dict(lines[-1])
    if "message" not in answer:
        return answer | _join(lines, ("response", "thinking"))
    messages: list[Json] = [dict(line["message"]) for line in lines]
    calls = [call for message in messages for call in message.get("tool_calls", [])]
    message = {"role": "assistant", **_join(messages, ("content", "thinking"))}
    return answer | {"message": message | ({"tool_calls": calls} if calls else {})}


def remove_times(answer: Json) -> Json:
    return {
        name: value for name, value in answer.items() if name not in (*STATISTICS, "created_at")
    }


def read_last_prompt() -> str:
    """Returns the newest prompt of the recording parrot as text."""
    marks = {256: b"<|im_start|>", 257: b"<|im_end|>"}
    return b"".join(
        marks.get(token_id) or bytes([token_id]) for token_id in received_prompts[-1]
    ).decode()


def read_error(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.keys() == {"error"}
    text: str = body["error"]
    return text


def _join(parts: list[Json], names: tuple[str, ...]) -> Json:
    texts = {name: "".join(str(part.get(name, "")) for part in parts) for name in names}
    return {name: text for name, text in texts.items() if text or name != "thinking"}
