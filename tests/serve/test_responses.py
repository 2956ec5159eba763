"""The official client and the requests of OVMS's documents get responses of the demo model."""

import json
from collections.abc import Iterator
from typing import Any  # the variables of a documented program

import httpx
import pydantic
import pytest
from openai import OpenAI

from tests.api.responses.strict import named_events, strict_events, strict_response
from tests.serve.answers import Json
from tests.serve.running import RunningServer, send, serving

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
    names = [f"--served-model-name={name}" for name in ("ouzel-demo", "llama3", "llava")]
    with serving(*names, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        yield client


CURL = r"""curl http://localhost/v3/responses \
  -H "Content-Type: application/json" \
  -d '{
    "model": "llama3",
    "input": "What is OpenVINO?"
  }'"""
CURL_WITH_IMAGE = r"""curl http://localhost/v3/responses \
  -H "Content-Type: application/json" \
  -d '{
    "model": "llava",
    "input": [
        {
            "role": "user",
            "content": [
                {
                    "type": "input_text",
                    "text": "What is on the picture?"
                },
                {
                    "type": "input_image",
                    "image_url": "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD ..."
                }
            ]
        }
    ],
    "max_output_tokens": 128
}'"""
PYTHON = """from openai import OpenAI
client = OpenAI(base_url="http://localhost:8000/v3", api_key="unused")
response = client.responses.create(
    model="llama3",
    input="What is OpenVINO?",
    max_output_tokens=100,
    extra_body={"top_k": 1},
    stream=False
)
"""
ANSWER: Json = {
    "id": "resp-1716825108",
    "object": "response",
    "created_at": 1716825108,
    "completed_at": 1716825110,
    "error": None,
    "model": "llama3",
    "status": "completed",
    "parallel_tool_calls": True,
    "store": True,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "truncation": "disabled",
    "metadata": {},
    "output": [
        {
            "id": "msg-0",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "OpenVINO is an open-source toolkit ...",
                    "annotations": [],
                },
            ],
        }
    ],
    "usage": {"input_tokens": 5, "output_tokens": 42, "total_tokens": 47},
}
VARYING = {
    "id",
    "created_at",
    "completed_at",
    "text",
    "input_tokens",
    "output_tokens",
    "total_tokens",
}


def test_the_documented_curl_line(server: RunningServer) -> None:
    answer = send(CURL.replace("http://localhost", server.root))
    assert strict_response(json.dumps(answer)).output_text
    check_has_everything(ANSWER | {"model": "ouzel-demo"}, answer)


def check_has_everything(documented: object, answer: object) -> None:
    """Checks that the answer has all documented keys and values, apart from ids and times."""
    match documented, answer:
        case dict(), dict():
            for name, value in documented.items():
                if name in VARYING and not isinstance(value, dict):
                    assert type(answer[name]) is type(value), name
                else:
                    check_has_everything(value, answer[name])
        case list(), list():
            for pair in zip(documented, answer, strict=True):
                check_has_everything(*pair)
        case _:
            assert documented == answer


def test_the_documented_lines_of_python(server: RunningServer) -> None:
    names: dict[str, Any] = {}
    exec(PYTHON.replace("http://localhost:8000", server.root), names)
    assert names["response"].output_text
    names["client"].close()


def test_the_documented_request_with_an_image_is_refused_by_its_name(server: RunningServer) -> None:
    error = send(CURL_WITH_IMAGE.replace("http://localhost", server.root))["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "input[0].content[1].type")


def test_events_come_in_the_documented_order(server: RunningServer) -> None:
    body = {
        "model": "llama3",
        "input": "What is OpenVINO?",
        "max_output_tokens": 100,
        "stream": True,
    }
    names = [
        name
        for name, _ in named_events(
            httpx.post(f"{server.root}/v3/responses", json=body, timeout=None)
        )
    ]
    assert list(dict.fromkeys(names)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_a_stream_equals_the_whole_response(client: OpenAI) -> None:
    ask = {"model": "ouzel-demo", "input": "Count from 1 to 10.", "temperature": 0}
    whole = client.responses.create(**ask)  # type: ignore[call-overload]
    with client.responses.stream(**ask) as stream:  # type: ignore[call-overload]
        final = stream.get_final_response()
    assert final.output_text == whole.output_text != ""


def test_every_event_is_strictly_one_of_openais(server: RunningServer) -> None:
    body = {
        "model": "ouzel-demo",
        "input": "Count from 1 to 10.",
        "stream": True,
        "reasoning": {"summary": "auto"},
    }
    events = strict_events(httpx.post(f"{server.url}/responses", json=body, timeout=None))
    assert events[-1].type == "response.completed"


class Count(pydantic.BaseModel):
    number: int
    word: str


def test_a_form_is_obeyed(client: OpenAI) -> None:
    response = client.responses.parse(
        model="ouzel-demo", input="Count to 2.", text_format=Count, temperature=0
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
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "get_weather"}],
        },
    ],
)
def test_a_tool_that_must_be_called_is_called(
    client: OpenAI, tool_choice: dict[str, object]
) -> None:
    ask = {"model": "ouzel-demo", "input": "Hello!", "tools": [WEATHER], "tool_choice": tool_choice}
    response = client.responses.create(**ask, max_output_tokens=100)  # type: ignore[call-overload]
    call = response.output[-1]
    assert call.type == "function_call"
    assert json.loads(call.arguments)["city"] in ("Rome", "Oslo")
