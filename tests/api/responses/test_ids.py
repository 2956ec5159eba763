"""Ids contain the digits of their conversation, so that a router finds its replica."""

import hashlib
import re

import httpx
import pytest

from ouzel.responses.output_items import new_id
from ouzel.routing import find_chain_root
from tests.api.requests import Json, wait_until
from tests.api.responses.sockets import connect_socket
from tests.api.serving import RunningServer


def create(http: httpx.Client, **fields: object) -> str:
    """Creates a response, waits for its end and returns its id."""
    answer = http.post("/v1/responses", json={"model": "parrot", "input": "Hello", **fields})
    assert answer.status_code == 200, answer.text
    response: Json = answer.json()
    url = f"/v1/responses/{response['id']}"
    wait_until(lambda: http.get(url).json()["status"] == "completed")
    return str(response["id"])


def digits(chained_id: str) -> str:
    """Returns the digits of a conversation in an id, in the form of docs/reference/responses.md."""
    match = re.fullmatch(r"(?:resp|conv)_([0-9a-f]{8})[0-9a-f]{40}", chained_id)
    assert match is not None, chained_id
    return match[1]


def test_a_continuation_has_the_digits_of_its_response(thinker_http: httpx.Client) -> None:
    first = create(thinker_http)
    second = create(thinker_http, previous_response_id=first)
    branch = create(thinker_http, previous_response_id=first, background=True)
    third = create(thinker_http, previous_response_id=second)
    compacted = thinker_http.post(
        "/v1/responses/compact", json={"previous_response_id": third}
    ).json()["id"]
    chain = [first, second, branch, third, compacted]
    assert {digits(each) for each in chain} == {digits(first)}
    assert len(set(chain)) == len(chain)


def test_conversations_begin_with_digits_of_their_own(thinker_http: httpx.Client) -> None:
    roots = {digits(create(thinker_http)) for _ in range(3)}
    roots |= {
        digits(thinker_http.post("/v1/conversations", json={}).json()["id"]) for _ in range(3)
    }
    assert len(roots) == 6


@pytest.mark.parametrize("as_object", [False, True])
def test_a_response_in_a_conversation_has_its_digits(
    thinker_http: httpx.Client, as_object: bool
) -> None:
    conversation_id = thinker_http.post("/v1/conversations", json={}).json()["id"]
    in_it = create(
        thinker_http, conversation={"id": conversation_id} if as_object else conversation_id
    )
    after_it = create(thinker_http, previous_response_id=in_it)
    assert digits(conversation_id) == digits(in_it) == digits(after_it)


def test_a_web_socket_continues_the_digits_of_a_response_without_store(
    thinker: RunningServer,
) -> None:
    with connect_socket(thinker.url) as socket:
        first = socket.response("Hello", store=False)
        second = socket.response("And?", store=False, previous_response_id=first.id)
    assert digits(first.id) == digits(second.id)


def test_an_id_of_another_form_stands_for_digits_too() -> None:
    for foreign in ("resp_1", "resp_" + "A" * 48, "conversation", "", "\udc80"):
        expected = hashlib.sha256(foreign.encode(errors="replace")).hexdigest()[:8]
        assert find_chain_root(foreign) == digits(new_id("resp", continues=foreign)) == expected
