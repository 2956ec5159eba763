"""An id that is unknown, deleted or of another API key gives the same 404."""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import Json, read_error
from tests.api.serving import RunningServer, running_server

STRANGE = ["x", "'", '"; DROP TABLE responses; --', "%", "a\0b", "a\nb", "wörld 🦉", "x" * 5000]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('shared')}/responses.sqlite3"
    options: dict[str, object] = {"step_s": 0.02}
    with running_server(
        options, config=ServerConfig(api_key=("ours", "theirs")), store_url=url
    ) as server:
        yield server


@pytest.fixture(scope="module")
def ours(shared: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=shared.url, timeout=None, headers={"authorization": "Bearer ours"}
    ) as client:
        yield client


@pytest.fixture(scope="module")
def theirs(shared: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=shared.url, timeout=None, headers={"authorization": "Bearer theirs"}
    ) as client:
        yield client


def request_by_path(http: httpx.Client, response_id: str) -> list[httpx.Response]:
    path = f"/v1/responses/{quote(response_id, safe='')}"
    return [
        http.get(path),
        http.get(path, params={"stream": True}),
        http.get(f"{path}/input_items"),
        http.post(f"{path}/cancel"),
        http.delete(path),
    ]


def request_by_field(http: httpx.Client, given_id: str) -> list[httpx.Response]:
    fields: list[Json] = [
        {"previous_response_id": given_id},
        {"conversation": given_id},
        {"conversation": {"id": given_id}},
        {"input": [{"type": "item_reference", "id": given_id}]},
    ]
    return [
        http.post("/v1/responses", json={"model": "parrot", "input": "Hi", **field})
        for field in fields
    ]


@pytest.mark.parametrize("given_id", STRANGE)
def test_an_id_of_nothing(ours: httpx.Client, given_id: str) -> None:
    answers = [*request_by_path(ours, given_id), *request_by_field(ours, given_id)]
    errors = [read_error(answer) for answer in answers]
    assert {answer.status_code for answer in answers} == {404}
    fields = ["previous_response_id", "conversation", "conversation", "input[0]"]
    assert [error["param"] for error in errors] == ["response_id"] * 5 + fields
    assert all(
        given_id[:50] in error["message"] and len(error["message"]) < 200 for error in errors
    )


@pytest.mark.parametrize("is_background", [False, True])
def test_objects_of_another_key_are_not_found(
    ours: httpx.Client, theirs: httpx.Client, is_background: bool
) -> None:
    body = {
        "model": "parrot",
        "input": "x" * 500 if is_background else "Hi",
        "background": is_background,
    }
    response_id = theirs.post("/v1/responses", json=body).json()["id"]
    [item] = theirs.get(f"/v1/responses/{response_id}/input_items").json()["data"]
    conversation_id = theirs.post("/v1/conversations", json={}).json()["id"]

    by_path = request_by_path(ours, response_id)
    by_field = [*request_by_field(ours, response_id), *request_by_field(ours, conversation_id)]
    by_field += request_by_field(ours, item["id"])

    assert {answer.status_code for answer in [*by_path, *by_field]} == {404}
    status = theirs.get(f"/v1/responses/{response_id}").json()["status"]
    assert status in ("queued", "in_progress") if is_background else status == "completed"
    assert theirs.delete(f"/v1/responses/{response_id}").status_code == 200
    assert request_by_path(theirs, response_id)[0].text == by_path[0].text


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/responses", "OPTIONS, POST"),
        ("/v1/responses/resp_1", "DELETE, GET, HEAD, OPTIONS"),
        ("/v1/responses/resp_1/cancel", "OPTIONS, POST"),
        ("/v1/conversations/conv_1", "DELETE, GET, HEAD, OPTIONS, POST"),
    ],
)
def test_a_wrong_method_is_told_the_methods_of_the_path(
    ours: httpx.Client, path: str, allowed: str
) -> None:
    answer = ours.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert allowed in read_error(answer)["message"]
