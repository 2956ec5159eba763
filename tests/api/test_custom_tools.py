"""A call of a custom tool in a chat is a text, whole, streamed and in the history."""

import json
from collections.abc import Iterator

import httpx
import pytest
from openai.types.chat import ChatCompletion

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from tests.api.engines import received_prompts
from tests.api.requests import Json, chat, read_error, read_events
from tests.api.serving import running_server
from tests.prompts.families import QWEN

TEXT = '+a "b"\n\\n é'
PATCH: Json = {
    "type": "custom",
    "custom": {"name": "patch", "description": "Edits.", "format": {"type": "text"}},
}
LOOK: Json = {"type": "function", "function": {"name": "look"}}
ARGUMENTS = json.dumps({"input": TEXT}, ensure_ascii=False)
SAID = f'\n<tool_call>\n{{"name": "patch", "arguments": {ARGUMENTS}}}\n</tool_call>'


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    setup = OutputFormat(calls=HERMES)
    with (
        running_server(
            chat_template=QWEN, output_format=setup, engine_factory="create_recording_parrot"
        ) as server,
        server.client() as client,
    ):
        yield client


def build_request(**fields: object) -> Json:
    return chat(SAID, tools=[PATCH, LOOK], **fields)


def test_a_call_is_a_text_in_an_answer_and_in_its_stream(http: httpx.Client) -> None:
    whole = ChatCompletion.model_validate_json(
        http.post("/v1/chat/completions", json=build_request()).text, strict=True
    )
    events = read_events(http.post("/v1/chat/completions", json=build_request(stream=True)))

    [choice] = whole.choices
    assert choice.finish_reason == "tool_calls"
    [call] = choice.message.tool_calls or []
    assert call.type == "custom"
    assert (call.custom.name, call.custom.input, call.model_extra) == ("patch", TEXT, {})
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events if event != "[DONE]"]
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls", [])]
    assert [(piece["index"], piece.keys() & {"function"}) for piece in pieces] == [
        (0, set())
    ] * len(pieces)
    assert (pieces[0]["type"], pieces[0]["custom"]["name"]) == ("custom", "patch")
    assert "".join(piece["custom"]["input"] for piece in pieces) == TEXT


def test_the_second_prompt_goes_on_where_the_first_answer_has_ended(http: httpx.Client) -> None:
    answer = http.post("/v1/chat/completions", json=build_request()).json()["choices"][0]["message"]
    first = [*received_prompts[-1], *SAID.encode()]
    result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "done"}
    messages = [{"role": "user", "content": SAID}, answer, result]
    assert (
        http.post("/v1/chat/completions", json=build_request() | {"messages": messages}).status_code
        == 200
    )
    assert list(received_prompts[-1][: len(first)]) == first


@pytest.mark.parametrize(
    ("fields", "param", "complaint"),
    [
        ({"tools": [{"type": "custom"}]}, "tools[0].custom", "required"),
        ({"tools": [{"type": "namespace", "name": "x"}]}, "tools[0].type", 'given "namespace"'),
        (
            {"tool_choice": {"type": "custom", "custom": {"name": "look"}}},
            "tool_choice",
            "given 'look'",
        ),
        ({"tool_choice": {"type": "custom"}}, "tool_choice", "tool_choice.custom is required"),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"type": "custom", "custom": {"name": "patch"}}],
                    }
                ]
            },
            "messages[0].tool_calls[0].custom.input",
            "must be a string",
        ),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"type": "custom", "custom": {"input": ""}}],
                    }
                ]
            },
            "messages[0].tool_calls[0].custom.name",
            "must be a non-empty string",
        ),
    ],
)
def test_a_malformed_custom_tool_is_named(
    http: httpx.Client, fields: Json, param: str, complaint: str
) -> None:
    answer = http.post("/v1/chat/completions", json=build_request() | fields)
    error = read_error(answer)
    assert (answer.status_code, error["param"]) == (400, param), error
    assert complaint in str(error["message"])
