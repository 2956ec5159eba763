"""Stored responses are read, replayed, followed, continued, cancelled and deleted."""

import json
from collections.abc import Iterator

import httpx
import openai
import openai.types.responses as openai_types
import pydantic
import pytest

from tests.api.requests import read_error
from tests.api.responses.strict import named_events, strict_end, strict_response
from tests.api.responses.test_response import SAYINGS, build_request
from tests.api.serving import RunningServer, running_server


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_stored_response_equals_the_answer(
    thinker_http: httpx.Client, saying: str, is_stream: bool
) -> None:
    answer = thinker_http.post(
        "/v1/responses", json=build_request(SAYINGS[saying], stream=is_stream)
    )
    response = strict_end(answer) if is_stream else strict_response(answer.text)

    kept = thinker_http.get(f"/v1/responses/{response.id}")

    assert strict_response(kept.text) == response


@pytest.mark.parametrize("after", [-1, 0, 4])
def test_a_stream_is_replayed_as_it_was(thinker_http: httpx.Client, after: int) -> None:
    body = build_request(SAYINGS["reasoning, text and calls"], stream=True)
    events = named_events(thinker_http.post("/v1/responses", json=body))
    response_id = json.loads(events[0][1])["response"]["id"]

    replayed = thinker_http.get(
        f"/v1/responses/{response_id}", params={"stream": True, "starting_after": after}
    )

    assert named_events(replayed) == events[after + 1 :]


def test_a_background_response_is_queued_first_and_made_without_a_waiting_client(
    thinker_client: openai.OpenAI,
) -> None:
    response = thinker_client.responses.create(model="parrot", input="Hello", background=True)
    assert response.status in ("queued", "in_progress") and response.background
    with thinker_client.responses.retrieve(response.id, stream=True) as stream:
        types = [event.type for event in stream]
    assert types[:3] == ["response.created", "response.queued", "response.in_progress"]
    assert types[-1] == "response.completed"
    assert thinker_client.responses.retrieve(response.id).output_text == "Hello"


def test_the_next_turn_continues(thinker_client: openai.OpenAI) -> None:
    first = thinker_client.responses.create(model="parrot", input="Hello")
    second = thinker_client.responses.create(
        model="parrot", input="And you?", previous_response_id=first.id
    )
    third = thinker_client.responses.create(
        model="parrot", input="Bye", previous_response_id=second.id
    )
    assert third.previous_response_id == second.id
    listed = list(thinker_client.responses.input_items.list(third.id, order="asc", limit=2))
    texts = [json.loads(item.to_json())["content"][0]["text"] for item in listed]
    assert texts == ["Hello", "Hello", "And you?", "And you?", "Bye"]


def test_a_response_without_store_leaves_nothing(thinker_http: httpx.Client) -> None:
    response = strict_response(
        thinker_http.post("/v1/responses", json=build_request("Hello", store=False)).text
    )
    answer = thinker_http.get(f"/v1/responses/{response.id}")
    assert answer.status_code == 404
    assert response.id in read_error(answer)["message"]


def test_a_deleted_response_is_gone(thinker_client: openai.OpenAI) -> None:
    response = thinker_client.responses.create(model="parrot", input="Hello")
    thinker_client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        thinker_client.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError, match=response.id) as raised:
        thinker_client.responses.create(
            model="parrot", input="And?", previous_response_id=response.id
        )
    assert raised.value.code == "previous_response_not_found"


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('slow')}/responses.sqlite3"
    with running_server({"step_s": 0.02}, store_url=url) as server:
        yield server


def test_a_running_response_is_cancelled(slow: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{slow.url}/v1", api_key="none") as client:
        response = client.responses.create(model="parrot", input="x" * 2000, background=True)
        with client.responses.retrieve(response.id, stream=True) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    break
        cancelled = client.responses.cancel(response.id)
        assert cancelled.status == "cancelled"
        assert 0 < len(cancelled.output_text) < 2000
        assert (
            client.responses.cancel(response.id)
            == client.responses.retrieve(response.id)
            == cancelled
        )
        with client.responses.retrieve(response.id, stream=True) as stream:
            assert list(stream)[-1].type == "response.incomplete"


ITEM: pydantic.TypeAdapter[openai_types.ResponseItem] = pydantic.TypeAdapter(
    openai_types.ResponseItem
)
TEXT = {"type": "input_text", "text": "Hi"}
ANSWER = {"type": "output_text", "text": "Hi"}
REFUSAL = {"type": "refusal", "refusal": "No."}


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
def test_messages_are_listed_with_the_parts_that_their_role_has(
    thinker_http: httpx.Client, role: str
) -> None:
    given = [
        {"role": role, "content": [TEXT, ANSWER, REFUSAL]},
        {"role": "user", "content": "Hello"},
    ]
    response_id = thinker_http.post(
        "/v1/responses", json={"model": "parrot", "input": given}
    ).json()["id"]

    listed = thinker_http.get(f"/v1/responses/{response_id}/input_items?order=asc").json()["data"]

    items = [ITEM.validate_json(json.dumps(item), strict=True) for item in listed]
    assert isinstance(items[0], openai_types.ResponseOutputMessage) == (role == "assistant")
    assert ["No." in str(item) for item in items] == [True, False]
