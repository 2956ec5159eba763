"""Responses in OVMS's dialect: reasoning as a summary, and fields that OVMS reads in a way of its own."""

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any  # JSON

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import Json, wait_until
from tests.api.responses.sockets import socket_to
from tests.api.responses.strict import check_lives, named_events, strict_event, strict_response
from tests.api.responses.test_response import CALL, SAYINGS, said
from tests.api.responses.test_turns import prompts_of_ten_turns
from tests.api.responses.thinking import thinking_server
from tests.api.responses.ways import WAYS
from tests.api.serving import RunningServer

PATH = "/v3/responses"
NOT_JSON = "The file is not valid json - "
THOUGHT = SAYINGS["reasoning"]
OF_SUMMARY = [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
]
OF_TEXT = [
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
]


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


def made(http: httpx.Client, body: Json) -> Any:
    answer = http.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events_in(answer: httpx.Response) -> list[Any]:
    """The events of a whole stream, of which all but the response in some of them are OpenAI's to the letter."""
    pairs = named_events(answer)
    events = [json.loads(data) for _, data in pairs]
    check_lives(
        [strict_event(name, data) for name, data in pairs if "response" not in json.loads(data)]
    )
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def streamed(http: httpx.Client, body: Json) -> list[Any]:
    return events_in(http.post(PATH, json=body | {"stream": True}))


def text_in(response: Any) -> str:
    return "".join(
        part["text"]
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    )


def folded(types: Sequence[str]) -> list[str]:
    """The types without repetitions in a row."""
    return [
        kind for position, kind in enumerate(types) if position == 0 or types[position - 1] != kind
    ]


def without_ids(response: Any) -> Any:
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
    reasoning, message = made(http, said(THOUGHT, **fields))["output"]
    assert reasoning["type"] == "reasoning"
    assert reasoning["summary"] == [{"type": "summary_text", "text": "let me see"}]
    assert reasoning["content"] == []
    assert message["content"] == [
        {"type": "output_text", "text": "It is an owl.", "logprobs": [], "annotations": []}
    ]


def test_a_stream_has_the_events_of_the_document_in_its_order(http: httpx.Client) -> None:
    events = streamed(http, said(THOUGHT))
    types = folded([event["type"] for event in events])
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
    body = said(SAYINGS[saying], **fields)
    end = streamed(http, body)[-1]["response"]
    assert without_ids(end) == without_ids(made(http, body))


def test_each_event_of_a_calls_arguments_names_the_call(http: httpx.Client) -> None:
    events = streamed(http, said(CALL))
    [item] = events[-1]["response"]["output"]
    of_arguments = [event for event in events if "function_call_arguments" in event["type"]]
    assert {event["call_id"] for event in of_arguments} == {item["call_id"]}
    assert "".join(event.get("delta", "") for event in of_arguments) == item["arguments"]


def test_a_limit_of_tokens_has_ovms_reason(http: httpx.Client) -> None:
    body = said("Hello", max_output_tokens=3)
    end = streamed(http, body)[-1]
    assert end["type"] == "response.incomplete"
    for response in (made(http, body), end["response"]):
        assert (response["status"], response["incomplete_details"]) == (
            "incomplete",
            {"reason": "max_tokens"},
        )
        assert "completed_at" not in response


def test_completed_at_is_there_once_it_is_completed(http: httpx.Client) -> None:
    responses = [
        event["response"] for event in streamed(http, said("Hello")) if "response" in event
    ]
    assert ["completed_at" in response for response in responses] == [False, False, True]
    assert made(http, said("Hello"))["completed_at"] >= 1_700_000_000


@pytest.mark.parametrize(
    ("fields", "text"), [({}, "Hello"), ({"include_stop_str_in_output": False}, "Hel")]
)
def test_a_stream_shows_its_stop_string(http: httpx.Client, fields: Json, text: str) -> None:
    asked = said("Hello", stop=["lo"], **fields)
    assert text_in(streamed(http, asked)[-1]["response"]) == text
    assert text_in(made(http, asked)) == "Hel"


def test_best_of_is_a_number_of_beams(
    babbler: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    fragile = {str(ord(character)): -100 for character in "#\a"}  # to the parser of this server
    asked: Json = {
        "model": "parrot",
        "input": "añb",
        "max_output_tokens": 12,
        "logit_bias": fragile,
    }
    beams = made(babbler, asked | {"num_beams": 4, "n": 3})["output"]
    caplog.set_level(logging.INFO, logger="ouzel")
    found = made(babbler, asked | {"best_of": 4, "n": 3, "temperature": 0.7})["output"]
    assert [item["content"] for item in found] == [item["content"] for item in beams]
    assert len(found) == 3
    assert (
        text_in(streamed(babbler, asked | {"best_of": 4})[-1]["response"])
        == found[0]["content"][0]["text"]
    )
    plain = made(babbler, asked | {"seed": 1})
    assert text_in(made(babbler, asked | {"seed": 1, "length_penalty": 3})) == text_in(plain)
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
    asked = said("Hi", chat_template_kwargs={"enable_thinking": False}, **fields)
    response = made(http, asked)
    assert (text_in(response), response["reasoning"]["effort"]) == ("Hi", None)
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
    """OVMS refuses such items, too."""
    answer = http.post(PATH, json={"model": "parrot", "input": [{"role": "user", **content}]})
    assert answer.status_code == 400
    assert "input[0].content must be" in answer.json()["error"]


def test_counting_a_prompt_needs_no_model(http: httpx.Client) -> None:
    asked = said("Hi", chat_template_kwargs={"enable_thinking": False}, reasoning={"effort": "low"})
    counted = http.post(
        f"{PATH}/input_tokens", json={name: asked[name] for name in asked if name != "model"}
    )
    assert counted.json()["input_tokens"] == made(http, asked)["usage"]["input_tokens"]


@pytest.mark.parametrize("fields", [{}, {"max_output_tokens": 14}, {"background": True}])
def test_a_kept_response_comes_back_as_it_was(http: httpx.Client, fields: Json) -> None:
    events = streamed(http, said(THOUGHT, **fields))
    end = events[-1]["response"]
    assert http.get(f"{PATH}/{end['id']}").json() == end
    replay = http.get(f"{PATH}/{end['id']}", params={"stream": "true"})
    assert [json.loads(data) for _, data in named_events(replay)] == events
    rest = http.get(f"{PATH}/{end['id']}", params={"stream": "true", "starting_after": 4})
    assert [json.loads(data) for _, data in named_events(rest)] == events[5:]


def test_a_summary_is_listed_and_read_back(http: httpx.Client) -> None:
    first = made(http, said(THOUGHT))
    second = made(http, {"model": "parrot", "input": "Bye", "previous_response_id": first["id"]})
    listed = http.get(f"{PATH}/{second['id']}/input_items", params={"order": "asc"}).json()["data"]
    assert [item["type"] for item in listed] == ["message", "reasoning", "message", "message"]
    assert listed[1] == first["output"][0]
    answer = made(
        http, {"model": "parrot", "input": [listed[1] | {"content": None}, listed[2], listed[3]]}
    )
    assert text_in(answer) == "Bye"


@pytest.mark.release("ten turns in OVMS's dialect, as the default dialect has them in each run")
def test_ten_turns_give_the_engine_the_prompts_of_the_default_dialect(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    prompts = []
    for profile in ("openai", "ovms"):
        url = f"sqlite:///{tmp_path_factory.mktemp('turns')}/responses.sqlite3"
        config = ServerConfig(profile=profile)
        with (
            thinking_server(
                url, max_model_len=2**15, engine_factory="create_recording_parrot", config=config
            ) as server,
            httpx.Client(base_url=f"{server.url}/v3", timeout=None) as http,
        ):
            prompts += [prompts_of_ten_turns(http, way) for way in WAYS]
    assert prompts == [prompts[0]] * len(prompts)


def test_a_server_of_the_other_profile_ends_a_response_in_its_own_form(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/responses.sqlite3"
    body = said("<think>" + 1500 * "hm ", stream=True, background=True)
    with (
        thinking_server(
            url, max_model_len=8192, step_s=0.01, config=ServerConfig(profile="ovms")
        ) as slow,
        thinking_server(url) as other,
        slow.client() as slow_http,
        other.client() as http,
        slow_http.stream("POST", PATH, json=body) as answer,
    ):
        lines = answer.iter_lines()
        first = next(line for line in lines if line.startswith("data: "))
        response_id = json.loads(first.removeprefix("data: "))["response"]["id"]
        wait_until(lambda: http.get(f"{PATH}/{response_id}").json()["output"])
        cancelled = http.post(f"{PATH}/{response_id}/cancel").json()
        replay = http.get(f"{PATH}/{response_id}", params={"stream": "true"})
        assert list(lines)[-2] == "data: [DONE]"
    [reasoning] = cancelled["output"]
    assert (cancelled["status"], reasoning["status"]) == ("cancelled", "incomplete")
    assert reasoning["content"] == [] and reasoning["summary"][0]["text"].startswith("hm")
    assert "completed_at" not in cancelled
    events = [json.loads(data) for _, data in named_events(replay)]
    assert [event["type"] for event in events[-4:]] == [*OF_SUMMARY[-3:], "response.incomplete"]
    assert events[-4]["text"] == reasoning["summary"][0]["text"]


def test_a_websocket_speaks_the_dialect(server: RunningServer) -> None:
    with socket_to(server.url, path=PATH) as socket:
        socket.create(THOUGHT, stop="owl", store=False)
        events = [json.loads(socket.connection.recv())]
        while events[-1]["type"] != "response.completed":
            events.append(json.loads(socket.connection.recv()))
        assert "response.reasoning_summary_text.delta" in {event["type"] for event in events}
        assert "response.reasoning_text.delta" not in {event["type"] for event in events}
        assert text_in(events[-1]["response"]) == "It is an owl"
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
    assert folded([event.type for event in followed]) == folded([event.type for event in events])
    [reasoning, _] = final.output
    assert reasoning.type == "reasoning" and [part.text for part in reasoning.summary] == [
        "let me see"
    ]
    assert final.output_text == "It is an owl."
    assert strict_response(http.get(f"{PATH}/{final.id}").text).output_text == final.output_text


def test_the_default_dialect_stays_as_it_is(default_http: httpx.Client) -> None:
    answer = default_http.post(
        PATH, json=said(THOUGHT, max_output_tokens=30, stop="owl", stream=True)
    )
    events = [json.loads(data) for _, data in named_events(answer)]
    types = {event["type"] for event in events}
    assert (
        "response.reasoning_text.delta" in types
        and "response.reasoning_summary_text.delta" not in types
    )
    assert "completed_at" in events[0]["response"]
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
