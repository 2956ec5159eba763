"""Stored responses in OVMS's dialect come back in the same form, and other servers read them."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.ovms.response_events import (
    OF_SUMMARY,
    PATH,
    THOUGHT,
    join_text,
    post_response,
    post_stream,
)
from tests.api.requests import Json, wait_until
from tests.api.responses.strict import named_events
from tests.api.responses.test_response import build_request
from tests.api.responses.test_turns import prompts_of_ten_turns
from tests.api.responses.thinking import thinking_server
from tests.api.responses.ways import WAYS


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    config = ServerConfig(profile="ovms")
    with thinking_server(url, config=config) as server, server.client() as http:
        yield http


@pytest.mark.parametrize("fields", [{}, {"max_output_tokens": 14}, {"background": True}])
def test_a_stored_response_equals_the_answer(http: httpx.Client, fields: Json) -> None:
    events = post_stream(http, build_request(THOUGHT, **fields))
    end = events[-1]["response"]
    assert http.get(f"{PATH}/{end['id']}").json() == end
    replay = http.get(f"{PATH}/{end['id']}", params={"stream": "true"})
    assert [json.loads(data) for _, data in named_events(replay)] == events
    rest = http.get(f"{PATH}/{end['id']}", params={"stream": "true", "starting_after": 4})
    assert [json.loads(data) for _, data in named_events(rest)] == events[5:]


def test_a_summary_is_listed_and_read_back(http: httpx.Client) -> None:
    first = post_response(http, build_request(THOUGHT))
    second = post_response(
        http, {"model": "parrot", "input": "Bye", "previous_response_id": first["id"]}
    )
    listed = http.get(f"{PATH}/{second['id']}/input_items", params={"order": "asc"}).json()["data"]
    assert [item["type"] for item in listed] == ["message", "reasoning", "message", "message"]
    assert listed[1] == first["output"][0]
    answer = post_response(
        http, {"model": "parrot", "input": [listed[1] | {"content": None}, listed[2], listed[3]]}
    )
    assert join_text(answer) == "Bye"


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
    body = build_request("<think>" + 1500 * "hm ", stream=True, background=True)
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
