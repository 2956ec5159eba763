"""Answers to OpenResponses' compliance suite (openresponses.org), except images, fit its schema.

The structs here express the schema: a field without a default is required, and only fields with
None in their type may be null.
"""

from typing import Literal

import httpx
import msgspec
import pytest

from tests.api.requests import Json
from tests.api.responses.strict import named_events
from tests.api.responses.test_response import CALL, LOOK

Status = Literal["in_progress", "completed", "incomplete"]


class Part(msgspec.Struct):
    type: Literal["output_text", "reasoning_text", "summary_text", "refusal"]


class Message(msgspec.Struct, tag_field="type", tag="message"):
    id: str
    status: Status
    role: Literal["user", "assistant", "system", "developer"]
    content: list[Part]


class FunctionCall(msgspec.Struct, tag_field="type", tag="function_call"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: Status


class Reasoning(msgspec.Struct, tag_field="type", tag="reasoning"):
    id: str
    summary: list[Part]
    content: list[Part] = []
    encrypted_content: str = ""


Item = Message | FunctionCall | Reasoning


class Function(msgspec.Struct, tag_field="type", tag="function"):
    name: str
    description: str | None
    parameters: dict[str, object] | None
    strict: bool | None


class Format(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"]


class Text(msgspec.Struct):
    format: Format
    verbosity: Literal["low", "medium", "high"] = "medium"


class ReasoningOptions(msgspec.Struct):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None
    summary: Literal["concise", "detailed", "auto"] | None


class InputDetails(msgspec.Struct):
    cached_tokens: int


class OutputDetails(msgspec.Struct):
    reasoning_tokens: int


class Usage(msgspec.Struct):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputDetails
    output_tokens_details: OutputDetails


class Response(msgspec.Struct, tag_field="object", tag="response"):
    id: str
    created_at: int
    completed_at: int | None
    status: str
    incomplete_details: dict[str, str] | None
    model: str
    previous_response_id: str | None
    instructions: str | None
    output: list[Item]
    error: dict[str, str] | None
    tools: list[Function]
    tool_choice: Literal["none", "auto", "required"] | dict[str, object]
    truncation: Literal["auto", "disabled"]
    parallel_tool_calls: bool
    text: Text
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    temperature: float
    reasoning: ReasoningOptions | None
    user: str | None
    usage: Usage | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    store: bool
    background: bool
    service_tier: str
    metadata: dict[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None


class Event(msgspec.Struct):
    """An event. All have `type` and `sequence_number`; the type determines the other fields."""

    type: str
    sequence_number: int
    response: Response | None = None
    item: Item | None = None
    part: Part | None = None


IN_ITEM = ("item_id", "output_index")
IN_CONTENT = (*IN_ITEM, "content_index")
REQUIRED: dict[str, tuple[str, ...]] = {
    "response.created": ("response",),
    "response.in_progress": ("response",),
    "response.output_item.added": ("output_index", "item"),
    "response.content_part.added": (*IN_CONTENT, "part"),
    "response.output_text.delta": (*IN_CONTENT, "delta", "logprobs"),
    "response.output_text.done": (*IN_CONTENT, "text", "logprobs"),
    "response.content_part.done": (*IN_CONTENT, "part"),
    "response.function_call_arguments.delta": (*IN_ITEM, "delta"),
    "response.function_call_arguments.done": (*IN_ITEM, "arguments"),
    "response.output_item.done": ("output_index", "item"),
    "response.completed": ("response",),
}


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


CASES: dict[str, Json] = {
    "a text": {"input": [user("Say hello in three words.")]},
    "a system prompt": {
        "input": [
            {"type": "message", "role": "system", "content": "You are a pirate."},
            user("Say hello."),
        ]
    },
    "a tool": {"input": [user(CALL)], "tools": [LOOK]},
    "several turns": {
        "input": [
            user("I am Alice."),
            {"type": "message", "role": "assistant", "content": "Hello Alice! How can I help?"},
            user("Who am I?"),
        ]
    },
    "values that count": {
        "input": [user("Hi")],
        "presence_penalty": 0.5,
        "frequency_penalty": -1,
        "metadata": {},
    },
}


def check(response: Response, case: str) -> None:
    assert (
        response.status == "completed"
        and response.completed_at is not None
        and response.usage is not None
    )
    kind = FunctionCall if case == "a tool" else Message
    assert [type(item) for item in response.output] == [kind]
    penalties = CASES[case].get("presence_penalty", 0), CASES[case].get("frequency_penalty", 0)
    assert (response.presence_penalty, response.frequency_penalty) == penalties


@pytest.mark.parametrize("case", CASES)
def test_a_whole_response_is_of_its_schema(thinker_http: httpx.Client, case: str) -> None:
    answer = thinker_http.post("/v1/responses", json={"model": "parrot", **CASES[case]})
    check(msgspec.json.decode(answer.content, type=Response), case)


@pytest.mark.parametrize("case", CASES)
def test_every_event_is_of_its_schema(thinker_http: httpx.Client, case: str) -> None:
    body = {"model": "parrot", "stream": True, **CASES[case]}
    seen: set[str] = set()
    for _, data in named_events(thinker_http.post("/v1/responses", json=body)):
        event, fields = msgspec.json.decode(data, type=Event), msgspec.json.decode(data)
        assert set(REQUIRED[event.type]) <= fields.keys()
        seen.add(event.type)

    of_calls = {"response.function_call_arguments.delta", "response.function_call_arguments.done"}
    of_texts = {name for name in REQUIRED if "output_text" in name or "content_part" in name}
    assert seen == REQUIRED.keys() - (of_texts if case == "a tool" else of_calls)
    assert event.response is not None
    check(event.response, case)
