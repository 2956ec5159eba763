"""When the database fails, every request is answered, and the server recovers afterwards."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.api.requests import Json, read_error, wait_until
from tests.api.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken") / "responses.sqlite3"


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[RunningServer]:
    with running_server({"step_s": 0.01}, store_url=f"sqlite:///{file}") as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=None) as client:
        yield client


def build_body(**fields: object) -> Json:
    return {"model": "parrot", "input": "Hello", **fields}


BEGINS = "BEFORE INSERT ON responses"
GOES_ON = "BEFORE UPDATE OF body ON responses"
ENDS = "BEFORE UPDATE OF body ON responses WHEN new.status NOT IN ('queued', 'in_progress')"


@contextmanager
def break_store(file: Path, *moments: str) -> Iterator[None]:
    """Makes the database fail at these moments (events of SQL triggers) in the `with` block."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for number, moment in enumerate(moments):
            connection.execute(
                f"CREATE TRIGGER broken_{number} {moment} BEGIN SELECT json('no JSON'); END"
            )
        try:
            yield
        finally:
            for number in range(len(moments)):
                connection.execute(f"DROP TRIGGER broken_{number}")


def is_idle(server: RunningServer) -> bool:
    return server.engine.num_unfinished == 0


@pytest.mark.parametrize(
    "fields", [{}, {"stream": True}, {"background": True}, {"background": True, "stream": True}]
)
def test_a_response_that_cannot_be_stored_from_the_beginning_is_refused(
    server: RunningServer, http: httpx.Client, file: Path, fields: dict[str, object]
) -> None:
    with break_store(file, BEGINS):
        answer = http.post("/v1/responses", json=build_body(**fields))
    assert (answer.status_code, read_error(answer)["code"]) == (503, "store_unavailable")
    wait_until(lambda: is_idle(server))
    assert http.post("/v1/responses", json=build_body(**fields)).status_code == 200


def test_an_answer_whose_end_cannot_be_stored_is_refused(http: httpx.Client, file: Path) -> None:
    # the store has responses of a conversation from their beginning
    conversation_id = http.post("/v1/conversations", json={}).json()["id"]
    with break_store(file, ENDS):
        answer = http.post("/v1/responses", json=build_body(conversation=conversation_id))
    assert (answer.status_code, read_error(answer)["code"]) == (503, "store_unavailable")


def test_a_stream_whose_end_cannot_be_stored_reports_it(http: httpx.Client, file: Path) -> None:
    with break_store(file, ENDS):
        answer = http.post("/v1/responses", json=build_body(stream=True))
        frames = answer.text.split("\n\n")
    response_id = json.loads(frames[0].partition("data: ")[2])["response"]["id"]
    assert "store" in frames[-2]
    assert "[DONE]" not in answer.text

    wait_until(lambda: http.get(f"/v1/responses/{response_id}").json()["status"] == "failed")


def test_a_background_response_ends_once_the_store_is_back(http: httpx.Client, file: Path) -> None:
    with break_store(file, ENDS):
        response_id = http.post("/v1/responses", json=build_body(background=True)).json()["id"]
        wait_until(lambda: "Hello" in http.get(f"/v1/responses/{response_id}").text)
    wait_until(lambda: http.get(f"/v1/responses/{response_id}").json()["status"] == "completed")


def test_a_response_whose_end_cannot_be_stored_can_be_deleted(
    server: RunningServer, http: httpx.Client, file: Path
) -> None:
    with break_store(file, ENDS):
        response_id = http.post("/v1/responses", json=build_body(background=True)).json()["id"]
        wait_until(lambda: "Hello" in http.get(f"/v1/responses/{response_id}").text)
        refused = http.post(f"/v1/responses/{response_id}/cancel")
        assert (refused.status_code, read_error(refused)["code"]) == (503, "store_unavailable")
        assert http.delete(f"/v1/responses/{response_id}").json()["deleted"]
    assert http.get(f"/v1/responses/{response_id}").status_code == 404
    wait_until(lambda: is_idle(server))


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"background": True}])
def test_a_deleted_file_is_a_503_that_says_so_until_it_is_back(
    http: httpx.Client, file: Path, fields: dict[str, object]
) -> None:
    kept_id = http.post("/v1/responses", json=build_body()).json()["id"]
    aside = file.rename(file.with_name("aside"))
    answers = [
        http.post("/v1/responses", json=build_body(**fields)),
        http.get(f"/v1/responses/{kept_id}"),
    ]
    aside.rename(file)
    for answer in answers:
        assert answer.status_code == 503
        assert read_error(answer)["message"] == "the store cannot be used now: its file is gone"
        assert answer.headers["retry-after"] == "1"
    assert http.get(f"/v1/responses/{kept_id}").status_code == 200
    assert http.post("/v1/responses", json=build_body(**fields)).status_code == 200
