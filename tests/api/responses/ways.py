"""A conversation is continued in three ways.

The client sends all items again, names the previous response, or names the conversation.
"""

from collections.abc import Callable
from typing import Any  # JSON

import httpx

from tests.api.responses.strict import strict_response

Json = dict[str, Any]
Send = Callable[..., Json]
Way = Callable[[httpx.Client], Send]


def _post(http: httpx.Client, **fields: object) -> Json:
    answer = http.post("responses", json=fields)
    strict_response(answer.text)
    answered: Json = answer.json()
    return answered


def resend_all(http: httpx.Client) -> Send:
    said: list[Json] = []

    def send(*new: Json, **fields: object) -> Json:
        said.extend(new)
        answer = _post(http, input=said, store=False, **fields)
        said.extend(answer["output"])
        return answer

    return send


def name_previous_response(http: httpx.Client) -> Send:
    previous: Json = {}

    def send(*new: Json, **fields: object) -> Json:
        answer = _post(http, input=new, **previous, **fields)
        previous["previous_response_id"] = answer["id"]
        return answer

    return send


def use_conversation(http: httpx.Client) -> Send:
    conversation = http.post("conversations", json={}).json()["id"]
    return lambda *new, **fields: _post(http, input=new, conversation=conversation, **fields)


WAYS = (resend_all, name_previous_response, use_conversation)


def list_calls(answer: Json) -> list[Json]:
    return [item for item in answer["output"] if item["type"] == "function_call"]


def build_output(call: Json, output: str) -> Json:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": output}
