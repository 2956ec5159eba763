"""Clients leave, cancel and delete at every moment, and the server releases all their resources."""

import asyncio
import json
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from ouzel.config import LimitsConfig
from tests.api.requests import Json, read_error, wait_until
from tests.api.responses.strict import named_events, strict_response
from tests.api.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("races") / "responses.sqlite3"


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[RunningServer]:
    """Yields a server whose steps are so slow that a client can act before the first token."""
    with running_server({"step_s": 0.1}, store_url=f"sqlite:///{file}") as server:
        yield server


@pytest.fixture(scope="module")
def other(file: Path) -> Iterator[RunningServer]:
    """Yields another server on the same store."""
    with running_server({"step_s": 0.1}, store_url=f"sqlite:///{file}") as server:
        yield server


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    """Yields a client; checks at the end that the test's requests and responses have ended."""
    with httpx.Client(base_url=server.url, timeout=None) as client:
        yield client
    wait_until(lambda: server.engine.num_unfinished == 0)
    wait_until(lambda: not list_running_tasks(server))


def list_running_tasks(server: RunningServer) -> list[str]:
    names: list[str] = []

    async def look() -> None:
        names.extend(task.get_name() for task in asyncio.all_tasks())

    server.run(look())
    return [name for name in names if name.startswith("response ")]


def build_body(text: str, **fields: object) -> Json:
    return {"model": "parrot", "input": text, **fields}


LONG = "x" * 3000


def begin_response(http: httpx.Client, **fields: object) -> str:
    """Begins a response in the background and returns its id, before its first token."""
    response_id: str = http.post(
        "/v1/responses", json=build_body(LONG, background=True, **fields)
    ).json()["id"]
    return response_id


def read_status(http: httpx.Client, response_id: str) -> str:
    status: str = http.get(f"/v1/responses/{response_id}").json()["status"]
    return status


def has_output(http: httpx.Client, response_id: str) -> bool:
    return "xx" in http.get(f"/v1/responses/{response_id}").text


def test_cancelled_before_the_first_token(http: httpx.Client) -> None:
    """Repeats the test until the cancellation arrives before the first token."""
    has_begun = True
    while has_begun:
        response_id = begin_response(http)
        cancelled = strict_response(http.post(f"/v1/responses/{response_id}/cancel").text)
        names = [
            name for name, _ in named_events(http.get(f"/v1/responses/{response_id}?stream=true"))
        ]
        has_begun = "response.in_progress" in names
    assert (cancelled.status, cancelled.output) == ("cancelled", [])
    assert names == ["response.created", "response.queued", "response.incomplete"]


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_leaves_before_the_first_token(
    http: httpx.Client, server: RunningServer, file: Path, is_stream: bool
) -> None:
    def stored_ids() -> set[str]:
        with closing(sqlite3.connect(file)) as connection:
            return {
                response_id for (response_id,) in connection.execute("SELECT id FROM responses")
            }

    earlier_ids = stored_ids()
    body = json.dumps(build_body(LONG, stream=is_stream)).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = (
            f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        wait_until(lambda: stored_ids() != earlier_ids)
    wait_until(lambda: server.engine.num_unfinished == 0)
    [response_id] = stored_ids() - earlier_ids
    wait_until(lambda: read_status(http, response_id) == "cancelled")
    events = named_events(http.get(f"/v1/responses/{response_id}?stream=true"))
    assert events[0][0] == "response.created"
    assert events[-1][0] == "response.incomplete"


@pytest.mark.parametrize("ending", ["cancel", "delete"])
def test_ended_by_many_at_once(http: httpx.Client, ending: str) -> None:
    response_id = begin_response(http)
    wait_until(lambda: has_output(http, response_id))
    url = f"/v1/responses/{response_id}"

    def end() -> httpx.Response:
        return http.post(f"{url}/cancel") if ending == "cancel" else http.delete(url)

    with ThreadPoolExecutor(8) as threads:
        answers = [answer.result() for answer in [threads.submit(end) for _ in range(8)]]

    if ending == "cancel":
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.text for answer in answers}) == 1
    else:
        assert sorted(answer.status_code for answer in answers) == [200, *[404] * 7]


def test_followers_leave_and_others_stay(http: httpx.Client) -> None:
    response_id = begin_response(http)
    url = f"/v1/responses/{response_id}?stream=true"
    with ThreadPoolExecutor(4) as threads:
        followers = [threads.submit(http.get, url) for _ in range(3)]
        with http.stream("GET", url) as leaving:
            next(leaving.iter_bytes())
        wait_until(lambda: has_output(http, response_id))
        assert read_status(http, response_id) == "in_progress"
        http.post(f"/v1/responses/{response_id}/cancel")
        texts = {follower.result().text for follower in followers}
    assert texts == {http.get(url).text}


def test_a_foreground_response_is_cancelled_by_its_id(http: httpx.Client) -> None:
    with http.stream("POST", "/v1/responses", json=build_body(LONG, stream=True)) as stream:
        lines = stream.iter_lines()
        data = next(line for line in lines if line.startswith("data: "))
        response_id = json.loads(data.removeprefix("data: "))["response"]["id"]
        assert http.post(f"/v1/responses/{response_id}/cancel").json()["status"] == "cancelled"
        assert [line for line in lines if line.startswith("event: ")][
            -1
        ] == "event: response.incomplete"


@pytest.mark.parametrize("ending", ["cancel", "delete"])
def test_a_follower_learns_of_an_end_on_another_server(
    http: httpx.Client, other: RunningServer, ending: str
) -> None:
    response_id = begin_response(http)
    url = f"{other.url}/v1/responses/{response_id}"
    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(http.get, f"/v1/responses/{response_id}?stream=true")
        wait_until(lambda: has_output(http, response_id))
        answer = httpx.post(f"{url}/cancel") if ending == "cancel" else httpx.delete(url)
        assert answer.status_code == 200
        events = named_events(following.result())
    assert [json.loads(data)["sequence_number"] for _, data in events] == list(range(len(events)))
    end = json.loads(events[-1][1])["response"]
    assert (events[-1][0], end["status"]) == ("response.incomplete", "cancelled")
    if ending == "cancel":
        assert end == answer.json() == http.get(f"/v1/responses/{response_id}").json()
    else:
        assert http.get(f"/v1/responses/{response_id}").status_code == 404


def test_no_client_sees_an_end_before_it_is_stored(http: httpx.Client, file: Path) -> None:
    response_id = http.post("/v1/responses", json=build_body("Hi", background=True)).json()["id"]
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # makes all writers wait
        wait_until(lambda: '"Hi"' in http.get(f"/v1/responses/{response_id}").text)
        assert {read_status(http, response_id) for _ in range(40)} == {"in_progress"}
        answer = http.post(
            "/v1/responses", json=build_body("And?", previous_response_id=response_id)
        )
        assert read_error(answer)["param"] == "previous_response_id"
        connection.execute("COMMIT")
    wait_until(lambda: read_status(http, response_id) == "completed")


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"background": True}, {"store": False}])
def test_an_engine_that_dies(file: Path, fields: Json) -> None:
    with (
        running_server({"step_s": 0.05}, store_url=f"sqlite:///{file}") as server,
        httpx.Client(base_url=server.url, timeout=None) as http,
    ):
        waiting = begin_response(http)
        wait_until(lambda: has_output(http, waiting))
        answer = http.post("/v1/responses", json=build_body("<|die|>", **fields))
        if "background" in fields:
            dead = answer.json()["id"]
            wait_until(lambda: read_status(http, dead) == "failed")
        elif "stream" in fields:
            assert named_events(answer)[-1][0] == "response.failed"
        else:
            assert answer.status_code == 500
        wait_until(lambda: read_status(http, waiting) == "failed")
        events = named_events(http.get(f"/v1/responses/{waiting}?stream=true"))
        assert events[-1][0] == "response.failed"
        wait_until(lambda: http.get("/health").status_code == 200)
        assert http.post("/v1/responses", json=build_body("Hi")).status_code == 200
        wait_until(lambda: server.engine.num_unfinished == 0 and not list_running_tasks(server))


def test_a_server_that_stops_leaves_its_queue(file: Path, other: RunningServer) -> None:
    """Another server runs the response in the queue; the response in progress has failed."""
    with (
        running_server(
            {"step_s": 0.3}, LimitsConfig(drain_timeout_s=3), store_url=f"sqlite:///{file}"
        ) as server,
        httpx.Client(base_url=server.url, timeout=None) as http,
    ):
        speaking = begin_response(http)
        wait_until(lambda: has_output(http, speaking))
        short = http.post("/v1/responses", json=build_body("Hi", background=True)).json()["id"]
    with httpx.Client(base_url=other.url, timeout=None) as http:
        assert read_status(http, speaking) == "failed"
        wait_until(lambda: read_status(http, short) == "completed")
        events = named_events(http.get(f"/v1/responses/{short}?stream=true"))
        assert [json.loads(data)["sequence_number"] for _, data in events] == list(
            range(len(events))
        )
