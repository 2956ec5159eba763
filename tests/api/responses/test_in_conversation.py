"""Responses in a conversation read its items, lock it and append to it."""

from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.api.requests import Json, read_error
from tests.api.responses.strict import strict_end, strict_response
from tests.api.responses.test_conversations import USER, create_conversation, list_items
from tests.api.responses.test_input import call, output
from tests.api.responses.test_input_tokens import count_tokens
from tests.api.responses.test_response import SAYINGS, build_request
from tests.api.serving import RunningServer, running_server


def post_response(http: httpx.Client, way: str, body: Json) -> Json:
    """Posts a request as `way` says and returns the response after its end."""
    if way == "stream":
        return strict_end(http.post("/v1/responses", json={**body, "stream": True})).to_dict()
    made = strict_response(
        http.post("/v1/responses", json={**body, "background": way == "background"}).text
    )
    if way == "background":
        # the stream ends when the response has ended
        http.get(f"/v1/responses/{made.id}", params={"stream": True})
    return strict_response(http.get(f"/v1/responses/{made.id}").text).to_dict()


@pytest.mark.parametrize("way", ["unary", "stream", "background"])
def test_input_and_output_are_appended_in_order(thinker_http: httpx.Client, way: str) -> None:
    conversation_id = create_conversation(thinker_http, items=[USER])
    saying = SAYINGS["reasoning, text and calls"]
    first = post_response(thinker_http, way, build_request(saying, conversation=conversation_id))
    assert first["conversation"] == {"id": conversation_id}
    items = list_items(thinker_http, conversation_id)
    output_types = ["reasoning", "message", "function_call", "function_call"]
    assert [item["type"] for item in items] == ["message", "message", *output_types]
    ids = [item["id"] for item in first["output"]]  # type: ignore[attr-defined]  # a list
    assert [item["id"] for item in items[2:]] == ids

    outputs = [output(str(item["call_id"]), "done") for item in items[4:]]
    expected = count_tokens(thinker_http, **build_request("", input=[*items, *outputs]))
    second = post_response(
        thinker_http, way, build_request("", input=outputs, conversation={"id": conversation_id})
    )
    assert second["usage"]["input_tokens"] == expected  # type: ignore[index]  # an object
    types = [item["type"] for item in list_items(thinker_http, conversation_id)[6:]]
    assert types == ["function_call_output", "function_call_output", "message"]


def test_without_input_the_conversation_goes_on(thinker_http: httpx.Client) -> None:
    conversation_id = create_conversation(thinker_http, items=[USER])
    response = strict_response(
        thinker_http.post(
            "/v1/responses", json={"model": "parrot", "conversation": conversation_id}
        ).text
    )
    assert response.output_text == "Hi"
    assert len(list_items(thinker_http, conversation_id)) == 2


def test_an_empty_conversation_needs_input(thinker_http: httpx.Client) -> None:
    body = {"model": "parrot", "conversation": create_conversation(thinker_http)}
    answer = thinker_http.post("/v1/responses", json=body)
    assert (answer.status_code, read_error(answer)["param"]) == (400, "input")


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_failed_response_leaves_a_conversation_as_it_was(
    thinker_http: httpx.Client, is_stream: bool
) -> None:
    conversation_id = create_conversation(thinker_http, items=[USER])
    thinker_http.post(
        "/v1/responses",
        json=build_request("a<|fail|>", conversation=conversation_id, stream=is_stream),
    )
    assert len(list_items(thinker_http, conversation_id)) == 1
    # The conversation is not locked.
    post_response(thinker_http, "unary", build_request("Hello", conversation=conversation_id))
    assert len(list_items(thinker_http, conversation_id)) == 3


def test_a_refused_response_leaves_a_conversation_as_it_was(thinker_http: httpx.Client) -> None:
    conversation_id = create_conversation(thinker_http, items=[USER])
    answer = thinker_http.post(
        "/v1/responses", json=build_request("x" * 5000, conversation=conversation_id)
    )
    assert read_error(answer)["code"] == "context_length_exceeded"
    post_response(thinker_http, "unary", build_request("Hello", conversation=conversation_id))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "conversation"),
        ({"store": False}, "conversation"),
        ({"input": [call("call_1"), call("call_1")]}, "input[1].call_id"),
    ],
)
def test_fields_that_exclude_a_conversation_are_refused(
    thinker_http: httpx.Client, fields: Json, param: str
) -> None:
    body = build_request("Hi", conversation=create_conversation(thinker_http), **fields)
    answer = thinker_http.post("/v1/responses", json=body)
    assert (answer.status_code, read_error(answer)["param"]) == (400, param)


def test_an_unknown_conversation_is_not_continued(thinker_http: httpx.Client) -> None:
    answer = thinker_http.post("/v1/responses", json=build_request("Hi", conversation="conv_9"))
    assert (answer.status_code, read_error(answer)["param"]) == (404, "conversation")
    assert "'conv_9' not found" in read_error(answer)["message"]


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('slow')}/responses.sqlite3"
    with running_server({"step_s": 0.02}, store_url=url) as server:
        yield server


def test_a_conversation_makes_one_response_at_a_time(slow: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{slow.url}/v1", api_key="none", max_retries=0) as client:
        conversation_id = client.conversations.create().id
        running = client.responses.create(
            model="parrot", input="x" * 2000, conversation=conversation_id, background=True
        )
        with pytest.raises(openai.BadRequestError) as locked:
            client.responses.create(model="parrot", input="Hi", conversation=conversation_id)
        assert (locked.value.code, locked.value.param) == ("conversation_locked", "conversation")
        with pytest.raises(openai.BadRequestError) as locked:
            client.conversations.items.create(
                conversation_id, items=[{"role": "user", "content": "Hi"}]
            )
        assert locked.value.code == "conversation_locked"

        client.responses.cancel(running.id)

        assert list(client.conversations.items.list(conversation_id)) == []
        client.responses.create(model="parrot", input="Hi", conversation=conversation_id)
        assert len(list(client.conversations.items.list(conversation_id))) == 2


def test_a_response_ends_though_its_conversation_is_deleted(slow: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{slow.url}/v1", api_key="none", max_retries=0) as client:
        conversation_id = client.conversations.create().id
        running = client.responses.create(
            model="parrot", input="a few words", conversation=conversation_id, background=True
        )
        client.conversations.delete(conversation_id)
        with client.responses.retrieve(running.id, stream=True) as stream:
            assert list(stream)[-1].type == "response.completed"
        with pytest.raises(openai.NotFoundError):
            client.conversations.retrieve(conversation_id)
