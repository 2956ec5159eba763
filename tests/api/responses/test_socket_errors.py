"""Each error on a WebSocket is an event, and the connection stays open."""

import json
import logging
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed

from ouzel.config import LimitsConfig
from tests.api.requests import Json, wait_until
from tests.api.responses.sockets import Socket, connect_socket, read_error_event
from tests.api.serving import RunningServer, running_server


@pytest.fixture
def socket(server: RunningServer) -> Iterator[Socket]:
    with connect_socket(server.url) as socket:
        yield socket


def create(**fields: object) -> str:
    return json.dumps({"type": "response.create", "model": "parrot", "input": "Hello", **fields})


@pytest.mark.parametrize(
    ("frame", "param", "words"),
    [
        ("{", None, "not valid JSON"),
        ("", None, "given nothing"),
        ("[]", None, "must be a JSON object"),
        (b"{}", None, "must be text, given a binary one"),
        ("{}", "type", "response.create, response.cancel, response.steer, given null"),
        ('{"type": "response.delete"}', "type", 'given "response.delete"'),
        ('{"type": ["response.create"]}', "type", "given"),
        (create(stream_id=""), "stream_id", "1 to 256 letters"),
        (create(stream_id="a b"), "stream_id", 'given "a b"'),
        (create(stream_id="x" * 257), "stream_id", "1 to 256"),
        (create(stream_id=7), "stream_id", "given 7"),
        (create(stream=False), "stream", "given false"),
        (create(background=True), "background", "given true"),
        (create(generate="no"), "generate", 'given "no"'),
        (create(input=None), "input", "input"),
        (create(input=[]), "input", "input"),
        (create(temperature=3), "temperature", "given 3"),
        (create(max_output_tokens=-2), "max_output_tokens", "given -2"),
        (create(n=2), "n", "must be 1 beside stream"),
        (create(store=True), "store", "stores nothing"),
        (create(conversation="conv_1"), "conversation", "stores nothing"),
        (
            create(previous_response_id="resp_1", conversation="conv_1"),
            "conversation",
            "beside previous_response_id",
        ),
        ('{"type": "response.cancel"}', "response_id", "given null"),
        ('{"type": "response.cancel", "response_id": "resp_1"}', "response_id", "given resp_1"),
        (
            '{"type": "response.cancel", "response_id": "resp_1", "now": 1}',
            "now",
            "takes response_id only",
        ),
        ('{"type": "response.steer", "input": "x"}', "previous_response_id", "given null"),
        ('{"type": "response.steer", "previous_response_id": "resp_1"}', "input", "given null"),
    ],
)
def test_bad_messages(socket: Socket, frame: str | bytes, param: str | None, words: str) -> None:
    socket.connection.send(frame)
    told = read_error_event(socket.event())
    assert (told["status"], told["type"], told.get("param")) == (
        400,
        "invalid_request_error",
        param,
    )
    assert words in str(told["message"])
    assert socket.response("Hello").output_text == "Hello"


def test_an_error_names_its_lane(socket: Socket) -> None:
    socket.create("Hello", stream_id="main", temperature=3)
    assert socket.event().stream_id == "main"
    socket.send("response.stop", stream_id="main")
    assert socket.event().stream_id == "main"


def test_a_model_that_is_not_there_is_a_404(socket: Socket) -> None:
    socket.send("response.create", model="owl", input="Hello")
    assert read_error_event(socket.event())["status"] == 404


def test_a_long_message_is_read_beside_the_event_loop(socket: Socket) -> None:
    said: list[Json] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Hello"}], "note": "x" * 10_000}
    ]
    assert socket.response(said).output_text == "Hello"


def test_a_message_that_is_too_long_ends_the_connection() -> None:
    with (
        running_server(limits=LimitsConfig(max_body_bytes=1024)) as server,
        connect_socket(server.url) as socket,
    ):
        socket.create("x" * 2000)
        with pytest.raises(ConnectionClosed) as closed:
            socket.event()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


def test_a_failing_engine_fails_one_response(socket: Socket) -> None:
    socket.create("ab<|fail|>")
    end = socket.events()[-1]
    assert end.type == "response.failed"
    assert end.response.error is not None
    assert end.response.error.message == "scripted failure"
    assert socket.response("Hello").output_text == "Hello"


def test_a_dead_engine_is_replaced_under_an_open_connection() -> None:
    with running_server() as server, connect_socket(server.url) as socket:
        socket.create("ab<|die|>")
        assert socket.events()[-1].type in ("response.failed", "error")
        wait_until(lambda: server.engine.num_restarts == 1 and server.engine.num_free > 0)
        assert socket.response("Hello").output_text == "Hello"


def test_a_full_server_says_when_to_try_again() -> None:
    limits = LimitsConfig(max_queued_requests=0)
    with (
        running_server({"max_num_seqs": 1, "step_s": 0.01}, limits) as server,
        connect_socket(server.url) as socket,
    ):
        socket.create("x" * 300, stream_id="a")
        socket.until("response.created")
        socket.create("Hello", stream_id="b")
        told = socket.until("error")[-1]
        assert told.stream_id == "b"
        assert read_error_event(told)["status"] == 429
        assert read_error_event(told)["headers"] == {"retry-after": "1"}
        assert socket.events()[-1].type == "response.completed"
        assert socket.response("Hello", stream_id="b").output_text == "Hello"


def test_so_much_waits_on_a_connection() -> None:
    with running_server({"step_s": 0.01}) as server, connect_socket(server.url) as socket:
        for _ in range(70):
            socket.create("x" * 100)
        told = socket.until("error")[-1]
        assert read_error_event(told)["status"] == 429
        assert "64 requests wait" in str(read_error_event(told)["message"])


def test_a_client_that_never_reads_is_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    limits = LimitsConfig(write_timeout_s=0.1)
    with running_server({"max_model_len": 400_000}, limits) as server:
        server.shrink_send_buffers()
        with connect_socket(server.url, max_queue=1) as socket:
            for lane in range(8):
                socket.create("x" * 20_000, stream_id=f"lane-{lane}")
            wait_until(lambda: "response.create /v1/responses 499 " in caplog.text)
            wait_until(lambda: server.engine.num_unfinished == 0)
            with pytest.raises(ConnectionClosed):
                while True:
                    socket.event()


@pytest.mark.parametrize("bug", ["#", "\a"])
def test_a_bug_of_ours_tells_only_the_log(
    socket: Socket, caplog: pytest.LogCaptureFixture, bug: str
) -> None:
    socket.create(bug)
    end = socket.events()[-1]
    assert end.type == "response.failed"
    assert "a detail" not in end.to_json()
    assert "a detail for the log" in caplog.text
    assert socket.response("Hello").output_text == "Hello"
