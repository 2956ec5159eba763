"""Responses of the demo model, by the official client and as OpenVINO Model Server's documents send them."""

import json
from collections.abc import Iterator

import httpx
import pydantic
import pytest
from openai import OpenAI

from tests.api.responses.strict import strict_events, strict_response
from tests.cli.running import RunningServer, send, serving

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Rome", "Oslo"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    names = [f"--served-model-name={name}" for name in ("ouzel-demo", "llama3")]
    with serving(*names, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        yield client


def test_the_documented_curl_line(server: RunningServer) -> None:
    answer = send(
        r"""curl http://localhost/v3/responses \
  -H "Content-Type: application/json" \
  -d '{
    "model": "llama3",
    "input": "What is OpenVINO?"
  }'""".replace("http://localhost", server.root)
    )
    assert strict_response(json.dumps(answer)).status == "completed"
    shown = {"object", "created_at", "completed_at", "error", "model", "status", "parallel_tool_calls", "store", "text"}
    assert shown | {"id", "tool_choice", "tools", "truncation", "metadata", "output", "usage"} <= answer.keys()


def test_the_documented_lines_of_python(server: RunningServer) -> None:
    with OpenAI(base_url=f"{server.root}/v3", api_key="unused") as client:
        response = client.responses.create(
            model="llama3", input="What is OpenVINO?", max_output_tokens=100, extra_body={"top_k": 1}, stream=False
        )
    assert response.output_text


def test_the_documented_request_with_an_image_is_refused_by_its_name(server: RunningServer) -> None:
    parts = [
        {"type": "input_text", "text": "What is on the picture?"},
        {"type": "input_image", "image_url": "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD ..."},
    ]
    body = {"model": "llama3", "input": [{"role": "user", "content": parts}], "max_output_tokens": 128}
    answer = httpx.post(f"{server.root}/v3/responses", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input[0].content[1].type")


def test_a_stream_says_what_the_whole_response_says(client: OpenAI) -> None:
    ask = {"model": "ouzel-demo", "input": "Count from 1 to 10.", "temperature": 0}
    whole = client.responses.create(**ask)  # type: ignore[call-overload]
    with client.responses.stream(**ask) as stream:  # type: ignore[call-overload]
        final = stream.get_final_response()
    assert final.output_text == whole.output_text != ""


def test_every_event_is_strictly_one_of_openais(server: RunningServer) -> None:
    body = {"model": "ouzel-demo", "input": "Count from 1 to 10.", "stream": True, "reasoning": {"summary": "auto"}}
    events = strict_events(httpx.post(f"{server.url}/responses", json=body, timeout=None))
    assert events[-1].type == "response.completed"


class Count(pydantic.BaseModel):
    number: int
    word: str


def test_a_form_is_obeyed(client: OpenAI) -> None:
    response = client.responses.parse(
        model="ouzel-demo", input="Count to 2.", text_format=Count, extra_body={"temperature": 2, "seed": 7}
    )
    assert isinstance(response.output_parsed, Count)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": {"format": {"type": "json_object"}}},
        {"response_format": {"type": "json_object"}},
        {"guided_json": {"type": "object"}},
    ],
)
def test_any_json_object_is_a_form(server: RunningServer, fields: dict[str, object]) -> None:
    body = {"model": "ouzel-demo", "input": "Hello!", "max_output_tokens": 200, **fields}
    response = strict_response(httpx.post(f"{server.url}/responses", json=body, timeout=None).text)
    assert response.output_text.lstrip().startswith("{")


@pytest.mark.parametrize(
    "tool_choice",
    [
        "required",
        {"type": "function", "name": "get_weather"},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]},
    ],
)
def test_a_tool_that_must_be_called_is_called(client: OpenAI, tool_choice: dict[str, object]) -> None:
    ask = {"model": "ouzel-demo", "input": "Hello!", "tools": [WEATHER], "tool_choice": tool_choice}
    response = client.responses.create(**ask, max_output_tokens=100)  # type: ignore[call-overload]
    call = response.output[-1]
    assert call.type == "function_call"
    assert json.loads(call.arguments)["city"] in ("Rome", "Oslo")
