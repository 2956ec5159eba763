"""OVMS's dialect of responses shows reasoning as a summary and has events of its own."""

import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any  # JSON

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from tests.api.ovms.response_events import (
    OF_SUMMARY,
    OF_TEXT,
    PATH,
    THOUGHT,
    join_text,
    post_response,
    post_stream,
)
from tests.api.requests import Json
from tests.api.responses.sockets import connect_socket
from tests.api.responses.strict import named_events, strict_response
from tests.api.responses.test_response import CALL, SAYINGS, build_request
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer

NOT_JSON = "The file is not valid json - "


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    with thinking_server(url, config=ServerConfig(profile="ovms")) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


@pytest.fixture(scope="module")
def default_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        thinking_server(
            f"sqlite:///{tmp_path_factory.mktemp('default')}/responses.sqlite3"
        ) as server,
        server.client() as http,
    ):
        yield http


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v3", api_key="none", max_retries=0) as client:
        yield client


def drop_repetitions(types: Sequence[str]) -> list[str]:
    """Returns the types without repetitions in a row."""
    return [
        kind for position, kind in enumerate(types) if position == 0 or types[position - 1] != kind
    ]


def remove_ids(response: Any) -> Any:
    names = ("id", "created_at", "completed_at", "usage", "call_id")
    items = [
        {name: value for name, value in item.items() if name not in names}
        for item in response["output"]
    ]
    return {name: value for name, value in response.items() if name not in names} | {
        "output": items
    }


@pytest.mark.parametrize("fields", [{}, {"reasoning": {"effort": "high", "summary": "auto"}}])
def test_reasoning_is_a_summary(http: httpx.Client, fields: Json) -> None:
    reasoning, message = post_response(http, build_request(THOUGHT, **fields))["output"]
    assert reasoning["type"] == "reasoning"
    assert reasoning["summary"] == [{"type": "summary_text", "text": "let me see"}]
    assert reasoning["content"] == []
    assert message["content"] == [
        {"type": "output_text", "text": "It is an owl.", "logprobs": [], "annotations": []}
    ]


def test_a_stream_has_the_events_of_the_document_in_its_order(http: httpx.Client) -> None:
    events = post_stream(http, build_request(THOUGHT))
    types = drop_repetitions([event["type"] for event in events])
    assert types == [
        "response.created",
        "response.in_progress",
        *OF_SUMMARY,
        *OF_TEXT,
        "response.completed",
    ]
    of_summary = [event for event in events if "reasoning_summary" in event["type"]]
    assert {(event["output_index"], event["summary_index"]) for event in of_summary} == {(0, 0)}
    assert len({event["item_id"] for event in of_summary}) == 1
    assert (
        "".join(event["delta"] for event in of_summary if event["type"].endswith(".delta"))
        == "let me see"
    )
    assert {event["output_index"] for event in events if "output_text" in event["type"]} == {1}


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize(
    "fields", [{}, {"max_output_tokens": 12}, {"include": ["reasoning.encrypted_content"]}]
)
def test_a_stream_ends_with_the_whole_response(
    http: httpx.Client, saying: str, fields: Json
) -> None:
    body = build_request(SAYINGS[saying], **fields)
    end = post_stream(http, body)[-1]["response"]
    assert remove_ids(end) == remove_ids(post_response(http, body))


def test_each_event_of_a_calls_arguments_names_the_call(http: httpx.Client) -> None:
    events = post_stream(http, build_request(CALL))
    [item] = events[-1]["response"]["output"]
    of_arguments = [event for event in events if "function_call_arguments" in event["type"]]
    assert {event["call_id"] for event in of_arguments} == {item["call_id"]}
    assert "".join(event.get("delta", "") for event in of_arguments) == item["arguments"]


def test_a_limit_of_tokens_has_ovms_reason(http: httpx.Client) -> None:
    body = build_request("Hello", max_output_tokens=3)
    end = post_stream(http, body)[-1]
    assert end["type"] == "response.incomplete"
    for response in (post_response(http, body), end["response"]):
        assert (response["status"], response["incomplete_details"]) == (
            "incomplete",
            {"reason": "max_tokens"},
        )
        assert "completed_at" not in response


def test_completed_at_is_there_once_it_is_completed(http: httpx.Client) -> None:
    responses = [
        event["response"]
        for event in post_stream(http, build_request("Hello"))
        if "response" in event
    ]
    assert ["completed_at" in response for response in responses] == [False, False, True]
    assert post_response(http, build_request("Hello"))["completed_at"] >= 1_700_000_000


@pytest.mark.parametrize(
    ("fields", "text"), [({}, "Hello"), ({"include_stop_str_in_output": False}, "Hel")]
)
def test_a_stream_shows_its_stop_string(http: httpx.Client, fields: Json, text: str) -> None:
    asked = build_request("Hello", stop=["lo"], **fields)
    assert join_text(post_stream(http, asked)[-1]["response"]) == text
    assert join_text(post_response(http, asked)) == "Hel"


def test_best_of_is_a_number_of_beams(
    random_ovms: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    # the parser of this server fails on purpose at these characters
    fragile = {str(ord(character)): -100 for character in "#\a"}
    asked: Json = {
        "model": "parrot",
        "input": "añb",
        "max_output_tokens": 12,
        "logit_bias": fragile,
    }
    beams = post_response(random_ovms, asked | {"num_beams": 4, "n": 3})["output"]
    caplog.set_level(logging.INFO, logger="ouzel")
    found = post_response(random_ovms, asked | {"best_of": 4, "n": 3, "temperature": 0.7})["output"]
    assert [item["content"] for item in found] == [item["content"] for item in beams]
    assert len(found) == 3
    assert (
        join_text(post_stream(random_ovms, asked | {"best_of": 4})[-1]["response"])
        == found[0]["content"][0]["text"]
    )
    plain = post_response(random_ovms, asked | {"seed": 1})
    assert join_text(
        post_response(random_ovms, asked | {"seed": 1, "length_penalty": 3})
    ) == join_text(plain)
    ignored = [each.getMessage() for each in caplog.records if each.name == "ouzel.wire.decode"]
    assert ignored == ["ignored fields: 'temperature'", "ignored fields: 'length_penalty'"]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("reasoning.effort", {"reasoning": {"effort": "high"}}),
        ("reasoning_effort", {"reasoning_effort": "high"}),
    ],
)
def test_template_variables_count_before_an_effort(
    http: httpx.Client,
    default_http: httpx.Client,
    caplog: pytest.LogCaptureFixture,
    name: str,
    fields: Json,
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    asked = build_request("Hi", chat_template_kwargs={"enable_thinking": False}, **fields)
    response = post_response(http, asked)
    assert (join_text(response), response["reasoning"]["effort"]) == ("Hi", None)
    assert f"ignored fields: {name!r}" in caplog.messages
    assert default_http.post("/v1/responses", json=asked).status_code == 400


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ("{", 412, NOT_JSON + "Cannot parse JSON body"),
        ("[]", 412, NOT_JSON + "JSON body must be an object"),
        ('{"a":' * 100_000, 412, NOT_JSON + "JSON body exceeds maximum nesting depth"),
        ('{"input": "Hi"}', 412, NOT_JSON + "model field is missing in JSON body"),
        ('{"model": 1, "input": "Hi"}', 412, NOT_JSON + "model field is not a string"),
        ('{"model": "parrot", "stream": 1}', 412, NOT_JSON + "stream field is not a boolean"),
        (
            '{"model": "nobody", "input": 1}',
            404,
            "Mediapipe graph definition with requested name is not found",
        ),
    ],
)
def test_faults_that_ovms_finds_before_it_asks_a_model(
    http: httpx.Client, body: str, status: int, text: str
) -> None:
    answer = http.post(PATH, content=body)
    assert (answer.status_code, answer.json()) == (status, {"error": text})


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": []}])
def test_a_message_of_the_input_has_a_content(http: httpx.Client, content: Json) -> None:
    """OVMS refuses messages without a content, too."""
    answer = http.post(PATH, json={"model": "parrot", "input": [{"role": "user", **content}]})
    assert answer.status_code == 400
    assert "input[0].content must be" in answer.json()["error"]


def test_counting_a_prompt_needs_no_model(http: httpx.Client) -> None:
    asked = build_request(
        "Hi", chat_template_kwargs={"enable_thinking": False}, reasoning={"effort": "low"}
    )
    counted = http.post(
        f"{PATH}/input_tokens", json={name: asked[name] for name in asked if name != "model"}
    )
    assert counted.json()["input_tokens"] == post_response(http, asked)["usage"]["input_tokens"]


def test_a_websocket_speaks_the_dialect(server: RunningServer) -> None:
    with connect_socket(server.url, path=PATH) as socket:
        socket.create(THOUGHT, stop="owl", store=False)
        events = [json.loads(socket.connection.recv())]
        while events[-1]["type"] != "response.completed":
            events.append(json.loads(socket.connection.recv()))
        assert "response.reasoning_summary_text.delta" in {event["type"] for event in events}
        assert "response.reasoning_text.delta" not in {event["type"] for event in events}
        assert join_text(events[-1]["response"]) == "It is an owl"
        socket.send("response.create", input="Hi")
        refused = socket.event().to_dict()
    assert refused["status"] == 412
    assert "model field is missing" in str(refused["error"])


def test_the_official_client_reads_a_stream(client: openai.OpenAI, http: httpx.Client) -> None:
    events = list(client.responses.create(model="parrot", input=THOUGHT, stream=True))
    pieces = [
        event.delta for event in events if event.type == "response.reasoning_summary_text.delta"
    ]
    assert "".join(pieces) == "let me see"
    with client.responses.stream(model="parrot", input=THOUGHT) as stream:
        followed = list(stream)
        final = stream.get_final_response()
    assert drop_repetitions([event.type for event in followed]) == drop_repetitions(
        [event.type for event in events]
    )
    [reasoning, _] = final.output
    assert reasoning.type == "reasoning" and [part.text for part in reasoning.summary] == [
        "let me see"
    ]
    assert final.output_text == "It is an owl."
    assert strict_response(http.get(f"{PATH}/{final.id}").text).output_text == final.output_text


def test_the_default_dialect_stays_as_it_is(default_http: httpx.Client) -> None:
    answer = default_http.post(
        PATH, json=build_request(THOUGHT, max_output_tokens=30, stop="owl", stream=True)
    )
    events = [json.loads(data) for _, data in named_events(answer)]
    types = {event["type"] for event in events}
    assert (
        "response.reasoning_text.delta" in types
        and "response.reasoning_summary_text.delta" not in types
    )
    assert "completed_at" in events[0]["response"]
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
