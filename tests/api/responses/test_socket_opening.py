"""A WebSocket opens for clients with a key and an allowed origin, and closes in order."""

import json
import logging
import threading
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.requests import Json, wait_until
from tests.api.responses.sockets import (
    Socket,
    connect_socket,
    read_ended_response,
    read_error_event,
)
from tests.api.serving import RunningServer, running_server

PAGE = "https://chat.example.org"


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    with running_server(
        config=ServerConfig(api_key=("sk-right",), allowed_origins=(PAGE,))
    ) as server:
        yield server


def read_refusal(
    server: RunningServer, path: str = "/v1/responses", **headers: str
) -> tuple[int, Json, dict[str, str]]:
    with (
        pytest.raises(InvalidStatus) as raised,
        connect_socket(server.url, path=path, additional_headers=headers),
    ):
        pass
    response = raised.value.response
    assert response.headers["content-type"] == "application/json"
    told: Json = json.loads(response.body or b"")["error"]
    return response.status_code, told, dict(response.headers.raw_items())


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer sk-wrong"}])
def test_without_a_key_it_is_a_401(guarded: RunningServer, headers: dict[str, str]) -> None:
    status, told, sent = read_refusal(guarded, **headers, **{"x-request-id": "abc"})
    assert (status, told["code"], told["type"]) == (401, "invalid_api_key", "invalid_request_error")
    assert (sent["www-authenticate"], sent["x-request-id"]) == ("Bearer", "abc")


@pytest.mark.parametrize("name", ["authorization", "api-key", "x-api-key"])
def test_with_a_key_it_opens(guarded: RunningServer, name: str) -> None:
    key = "Bearer sk-right" if name == "authorization" else "sk-right"
    with connect_socket(
        guarded.url, additional_headers={name: key, "x-request-id": "abc"}
    ) as socket:
        assert socket.connection.response is not None
        assert socket.connection.response.headers["x-request-id"] == "abc"
        assert socket.response("Hello").output_text == "Hello"


@pytest.mark.parametrize("path", ["/v1/nowhere", "/v1/chat/completions", "/v1/models", "/"])
def test_elsewhere_it_is_a_404(server: RunningServer, path: str) -> None:
    status, told, _ = read_refusal(server, path)
    assert (status, told["code"], told["message"]) == (
        404,
        "unknown_url",
        f"unknown URL: GET {path}; WebSockets are opened at /v1/responses, /v1/realtime",
    )


@pytest.mark.parametrize(
    "origin", ["https://evil.example.org", "null", "http://127.0.0.1:1", "http://[::1", ""]
)
def test_pages_of_other_origins_are_a_403(
    server: RunningServer, guarded: RunningServer, origin: str
) -> None:
    for each in (server, guarded):
        status, told, _ = read_refusal(each, origin=origin, authorization="Bearer sk-right")
        assert (status, told["code"]) == (403, "origin_not_allowed")
        assert origin in str(told["message"])


def test_a_refusal_is_no_error_of_the_server(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    read_refusal(server, "/v1/nowhere")
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_pages_of_allowed_origins_may(guarded: RunningServer) -> None:
    for origin in (PAGE, guarded.url):
        with connect_socket(
            guarded.url, additional_headers={"authorization": "Bearer sk-right"}, origin=origin
        ) as socket:
            assert socket.response("Hello").output_text == "Hello"


def test_all_origins_may_where_all_are_allowed() -> None:
    config = ServerConfig(allowed_origins=("*",))
    with (
        running_server(config=config) as server,
        connect_socket(server.url, origin="https://evil.example.org") as socket,
    ):
        assert socket.response("Hello").output_text == "Hello"


def test_so_many_are_open_at_a_time() -> None:
    with running_server(limits=LimitsConfig(max_websockets=1)) as server:
        with connect_socket(server.url) as socket:
            status, told, sent = read_refusal(server)
            assert (status, told["type"], sent["retry-after"]) == (429, "rate_limit_error", "1")
            assert socket.response("Hello").output_text == "Hello"
        wait_until(lambda: opens(server))


def opens(server: RunningServer) -> bool:
    try:
        with connect_socket(server.url):
            return True
    except InvalidStatus:
        return False


def test_each_response_has_a_line_in_the_log(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    with connect_socket(server.url, additional_headers={"x-request-id": "abc"}) as socket:
        socket.response("Hello")
        socket.create("Hello", temperature=3)
        socket.events()
    wait_until(lambda: "GET /v1/responses 101 duration_s=" in caplog.text)
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "ouzel.api.http.request_log"
    ]
    assert lines[0].startswith(
        "response.create /v1/responses 200 model=org/parrot prompt_tokens=24 completion_"
    )
    assert lines[1].startswith("response.create /v1/responses 400 duration_s=")


def test_a_socket_takes_requests_until_its_lifetime_ends_and_finishes_them() -> None:
    limits = LimitsConfig(websocket_lifetime_s=1.5)
    with running_server({"step_s": 0.01}, limits) as server, connect_socket(server.url) as socket:
        socket.create("x" * 200, stream_id="main")
        assert read_ended_response(socket.events()[-1]).output_text == "x" * 200
        told = socket.event()
        assert (told.stream_id, read_error_event(told)["code"]) == (
            None,
            "websocket_connection_limit_reached",
        )
        assert close_code(socket) == 1000


def test_a_server_that_stops_finishes_running_responses_and_closes_the_socket() -> None:
    with (
        running_server({"step_s": 0.01}) as server,
        connect_socket(server.url) as idle,
        connect_socket(server.url) as busy,
    ):
        busy.create("x" * 200)
        busy.until("response.created")
        stopping = threading.Thread(target=drain_and_stop, args=(server,))
        stopping.start()
        wait_until(lambda: server.engine.num_free == 0)
        busy.create("Too late", stream_id="b")
        events = busy.until("response.completed")
        assert read_ended_response(events[-1]).output_text == "x" * 200
        [told] = [event for event in events if event.type == "error"]
        assert (told.stream_id, read_error_event(told)["status"]) == ("b", 503)
        assert close_code(busy) == close_code(idle) == 1012
        stopping.join()


def drain_and_stop(server: RunningServer) -> None:
    server.run(server.engine.drain(3600))
    server.stop()


def close_code(socket: Socket) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        socket.event()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


def test_messages_that_wait_take_of_the_bytes_for_bodies_until_they_are_answered() -> None:
    limits = LimitsConfig(max_body_bytes=2**20, max_body_bytes_total=2**20)
    with (
        running_server({"step_s": 0.1}, limits) as server,
        connect_socket(server.url) as busy,
        connect_socket(server.url) as other,
    ):
        busy.create("x" * 3000)
        [*_, created] = busy.until("response.created")
        busy.create("x" * 900_000)
        busy.send("response.cancel", response_id="resp_of_nobody")
        # this error shows that the server has read the message before
        assert "resp_of_nobody" in str(read_error_event(busy.until("error")[-1])["message"])

        def told_of_another() -> Json:
            other.create("x" * 400_000)
            return read_error_event(other.event())

        told = told_of_another()
        assert (told["status"], told["code"]) == (429, "overloaded")
        assert "max_body_bytes_total is 1048576" in str(told["message"])
        assert other.response("Hello").output_text == "Hello"
        assert created.type == "response.created"
        busy.send("response.cancel", response_id=created.response.id)
        assert read_error_event(busy.until("error")[-1])["code"] == "context_length_exceeded"
        wait_until(lambda: told_of_another()["code"] == "context_length_exceeded")


def test_a_message_of_very_many_values_is_refused_alone(server: RunningServer) -> None:
    with connect_socket(server.url) as socket:
        socket.create([{}] * 300_000)
        told = read_error_event(socket.event())
        assert (told["status"], "must have <= 262144 objects" in str(told["message"])) == (
            400,
            True,
        )
        assert socket.response("Hello").output_text == "Hello"
