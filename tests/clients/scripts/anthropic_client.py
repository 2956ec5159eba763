"""Uses a server as a user of `anthropic` does.

Usage: `python anthropic_client.py ROOT`.

Each answer is checked strictly against the package's own types, which allow no further fields.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any  # JSON, and the package's types

import anthropic
import httpx
from anthropic.types import (
    ErrorResponse,
    Message,
    MessageTokensCount,
    ModelInfo,
    RawMessageStreamEvent,
)
from pydantic import BaseModel, TypeAdapter

ROOT = sys.argv[1]
WEATHER = '{"temperature": 21, "condition": "sunny"}'
TOOL: Any = {
    "name": "get_weather",
    "description": "Get the current weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"enum": [1, 2, 3]}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
HELLO: Any = [{"role": "user", "content": "Hello!"}]
QUESTION: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
SUM: Any = [{"role": "user", "content": "What is 12 plus 30?"}]
FIELDS: Any = {"model": "ouzel", "max_tokens": 100}
client = anthropic.Anthropic(base_url=ROOT, api_key="none", max_retries=0)


def strictly(kind: Any, text: str | bytes) -> Any:
    """Parses JSON as one of the package's types, and asserts that it has no further fields."""
    value = TypeAdapter(kind).validate_json(text, strict=True)
    further = list(further_fields(value))
    assert not further, f"{further} in {text!r}"
    return value


def further_fields(value: object) -> Iterator[str]:
    match value:
        case BaseModel():
            yield from (f"{type(value).__name__}.{name}" for name in value.model_extra or {})
            for each in vars(value).values():
                yield from further_fields(each)
        case list():
            for each in value:
                yield from further_fields(each)


def ask(**fields: Any) -> Message:
    message: Message = strictly(
        Message, client.messages.with_raw_response.create(**FIELDS | fields).text()
    )
    return message


def events(**fields: Any) -> list[Any]:
    """Returns the events of a stream in their order, without the pings."""
    headers = {"x-api-key": "none", "anthropic-version": "2023-06-01"}
    answer = httpx.post(
        f"{ROOT}/v1/messages",
        json=FIELDS | fields | {"stream": True},
        headers=headers,
        timeout=None,
    )
    assert answer.status_code == 200, answer.text
    read = []
    for frame in answer.text.removesuffix("\n\n").split("\n\n"):
        name, data = frame.split("\n")
        assert json.loads(data.removeprefix("data: "))["type"] == name.removeprefix("event: ")
        if name != "event: ping":
            read.append(strictly(RawMessageStreamEvent, data.removeprefix("data: ")))
    return read


def messages_are_whole_or_streamed() -> None:
    whole = ask(messages=HELLO)
    assert whole.stop_reason == "end_turn"
    assert whole.usage.output_tokens > 0
    read = events(messages=HELLO)
    assert [read[0].type, read[-2].type, read[-1].type] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    with client.messages.stream(**FIELDS, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        streamed = stream.get_final_message()
    assert [(block.type, block.text) for block in whole.content] == [("text", text)]
    assert ([block.text for block in streamed.content], streamed.stop_reason) == (
        [text],
        whole.stop_reason,
    )
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    cut = ask(messages=HELLO, stop_sequences=[text.split()[1]])
    assert (cut.stop_reason, cut.stop_sequence) == ("stop_sequence", text.split()[1])
    assert ask(messages=HELLO, max_tokens=2).stop_reason == "max_tokens"


def tools_are_called_and_answered() -> None:
    asked = ask(messages=QUESTION, tools=[TOOL])
    [call] = [block for block in asked.content if block.type == "tool_use"]
    assert (call.name, call.input, asked.stop_reason) == (
        "get_weather",
        {"city": "Paris"},
        "tool_use",
    )
    result: Any = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": [{"type": "text", "text": WEATHER}],
    }
    history = [
        *QUESTION,
        {"role": "assistant", "content": asked.content},
        {"role": "user", "content": [result]},
    ]
    answer = ask(messages=history, tools=[TOOL])
    assert [block.text for block in answer.content] == [
        "The temperature is 21 and the condition is sunny."
    ]
    with client.messages.stream(**FIELDS, messages=QUESTION, tools=[TOOL]) as stream:
        [streamed] = [
            block for block in stream.get_final_message().content if block.type == "tool_use"
        ]
    assert (streamed.name, streamed.input) == (call.name, call.input)
    assert {event.type for event in events(messages=QUESTION, tools=[TOOL])} >= {
        "content_block_delta"
    }
    for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather"}):
        assert [
            block.type for block in ask(messages=HELLO, tools=[TOOL], tool_choice=choice).content
        ] == ["tool_use"]
    assert ask(messages=HELLO, tools=[TOOL], tool_choice={"type": "none"}).stop_reason == "end_turn"


def thinking_is_shown_and_read_back() -> None:
    fields = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
    thought = ask(messages=SUM, **fields)
    assert [block.type for block in thought.content] == ["thinking", "text"]
    assert thought.content[0].signature
    kinds = [
        event.delta.type
        for event in events(messages=SUM, **fields)
        if event.type == "content_block_delta"
    ]
    assert list(dict.fromkeys(kinds)) == ["thinking_delta", "signature_delta", "text_delta"]
    history = [
        *SUM,
        {"role": "assistant", "content": thought.content},
        {"role": "user", "content": "Thank you!"},
    ]
    assert ask(messages=history, **fields).content


def tokens_are_counted() -> None:
    counted = client.messages.with_raw_response.count_tokens(
        model="ouzel", messages=QUESTION, tools=[TOOL]
    )
    number = strictly(MessageTokensCount, counted.text()).input_tokens
    usage = ask(messages=QUESTION, tools=[TOOL]).usage
    assert number == usage.input_tokens + (usage.cache_read_input_tokens or 0)
    assert [strictly(ModelInfo, each.model_dump_json()).id for each in client.models.list()] == [
        "ouzel"
    ]


def objects_obey_a_schema() -> None:
    said = ask(messages=HELLO, output_config={"format": {"type": "json_schema", "schema": SCHEMA}})
    [text] = [block.text for block in said.content]
    assert set(json.loads(text)) == {"name", "age"}


def errors_have_their_form() -> None:
    for fields, status, kind in (
        ({"messages": []}, 400, "invalid_request_error"),
        ({"messages": HELLO, "extra_body": {"temperature": 9}}, 400, "invalid_request_error"),
        ({"messages": HELLO, "model": "absent"}, 404, "not_found_error"),
    ):
        try:
            client.messages.create(**FIELDS | fields)
        except anthropic.APIStatusError as error:
            assert error.status_code == status, error
            assert strictly(ErrorResponse, error.response.content).error.type == kind
        else:
            raise AssertionError(f"no error for {fields}")


if __name__ == "__main__":
    messages_are_whole_or_streamed()
    tools_are_called_and_answered()
    thinking_is_shown_and_read_back()
    tokens_are_counted()
    objects_obey_a_schema()
    errors_have_their_form()
