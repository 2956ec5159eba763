"""Bodies for Ollama's endpoints, and their answers read back."""

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


def whole(response: httpx.Response) -> Json:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    answer: Json = response.json()
    return answer


def folded(lines: list[Json]) -> Json:
    """What the lines of a chat or of a prompt add up to: the last one, with all texts and calls before it."""
    answer = dict(lines[-1])
    if "message" not in answer:
        return answer | _joined(lines, ("response", "thinking"))
    messages: list[Json] = [dict(line["message"]) for line in lines]
    calls = [call for message in messages for call in message.get("tool_calls", [])]
    message = {"role": "assistant", **_joined(messages, ("content", "thinking"))}
    return answer | {"message": message | ({"tool_calls": calls} if calls else {})}


def without_times(answer: Json) -> Json:
    return {
        name: value for name, value in answer.items() if name not in (*STATISTICS, "created_at")
    }


def prompt_heard() -> str:
    """The text of the newest prompt that the attentive parrot got; its tokens are bytes and three marks."""
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


def _joined(parts: list[Json], names: tuple[str, ...]) -> Json:
    texts = {name: "".join(str(part.get(name, "")) for part in parts) for name in names}
    return {name: text for name, text in texts.items() if text or name != "thinking"}
