"""Requests of coding agents, above all of Codex CLI, are answered.

Agents store nothing, send the whole conversation each time, and send options with no effect here.
"""

import httpx
import pytest
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItemDoneEvent

from tests.api.requests import Json, read_error
from tests.api.responses.strict import strict_events
from tests.api.responses.test_input import call, message, output
from tests.api.responses.test_response import SAYINGS

SHELL: Json = {
    "type": "function",
    "name": "look",
    "description": "Runs a command",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "command": {"type": "array", "items": {"type": "string"}},
            "timeout_ms": {"type": "number"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
}


def text(role: str, *said: str) -> Json:
    parts = [{"type": "input_text", "text": each} for each in said]
    return {"type": "message", "id": None, "role": role, "content": parts, "phase": None}


FIRST_TURN: list[Json] = [
    text("developer", "Ask before you write."),
    text("user", "<cwd>/home</cwd>", "Hi"),
]
LATER: list[Json] = [
    {"type": "reasoning", "id": None, "summary": [], "content": None, "encrypted_content": None},
    {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": None,
    },
    {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
    message(
        "assistant",
        [{"type": "output_text", "text": "I look."}],
        type="message",
        id="msg_1",
        end_turn=None,
    ),
    call("call_1", "look", '{"command": ["ls"]}'),
    output(
        "call_1", [{"type": "input_text", "text": "a.py"}, {"type": "input_text", "text": "b.py"}]
    ),
]


def request(*items: Json, **fields: object) -> Json:
    return {
        "model": "parrot",
        "instructions": "You are a coding agent.",
        "input": [*FIRST_TURN, *items],
        "tools": [SHELL],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": None, "summary": "auto"},
        "text": {"verbosity": "low"},
        "service_tier": "priority",
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199c2",
        "client_metadata": {"session": "0199c2"},
        **fields,
    }


def post_turn(http: httpx.Client, body: Json) -> Response:
    answer = http.post(
        "/v1/responses", json=body, headers={"Accept": "text/event-stream", "session_id": "0199c2"}
    )
    assert answer.status_code == 200, answer.text
    *events, end = strict_events(answer)
    assert isinstance(end, ResponseCompletedEvent)
    items = [event.item for event in events if isinstance(event, ResponseOutputItemDoneEvent)]
    assert items == end.response.output  # some agents read the events, others the response
    return end.response


@pytest.mark.parametrize("saying", SAYINGS)
def test_each_turn_is_sent_back_whole(thinker_http: httpx.Client, saying: str) -> None:
    tools = [SHELL, {**SHELL, "name": "rest"}]
    question, next_question = text("user", SAYINGS[saying]), text("user", "And?")
    items = post_turn(thinker_http, request(question, tools=tools)).model_dump(
        mode="json", exclude_unset=True
    )["output"]
    outputs = [output(item["call_id"]) for item in items if item["type"] == "function_call"]

    again = post_turn(thinker_http, request(question, *items, *outputs, next_question, tools=tools))

    assert again.output_text == "And?"


def test_items_of_other_turns_are_read(thinker_http: httpx.Client) -> None:
    response = post_turn(thinker_http, request(*LATER, text("user", "And?")))

    assert (response.output_text, response.prompt_cache_key) == ("And?", "0199c2")
    assert thinker_http.get(f"/v1/responses/{response.id}").status_code == 404


REFUSED: dict[str, tuple[Json, str, str]] = {
    "a search that the server would make": (
        request(tools=[{"type": "web_search"}]),
        "tools[0].type",
        'must be one of "function", "custom", "namespace", "file_search", given "web_search"',
    ),
    "an image that a tool shows": (
        request(call("call_1"), output("call_1", [{"type": "input_image", "image_url": "data:,"}])),
        "input[3].output[0].type",
        "this model reads text only",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unsupported_requests_are_refused_before_the_stream(
    thinker_http: httpx.Client, case: str
) -> None:
    body, param, told = REFUSED[case]

    answer = thinker_http.post("/v1/responses", json=body)

    error = read_error(answer)
    assert (answer.status_code, error["param"]) == (400, param)
    assert error["message"].startswith(param) and told in error["message"]
