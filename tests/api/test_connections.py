"""Hostile clients on plain sockets are refused before the server reads an API key."""

import base64
import json
import logging
import socket
from collections.abc import Iterator

import pytest

from ouzel.config import ServerConfig
from tests.api.requests import chat, wait_until
from tests.api.serving import RunningServer, running_server

PATH = "/v1/chat/completions"
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_AND_CLOSE = GET[:-2] + b"Connection: close\r\n\r\n"
WEBSOCKET = (
    b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\n"
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
)
BODY = json.dumps(chat("Hi")).encode()
POST = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
SLOW = {"step_s": 0.001, "max_model_len": 20_000}
REQUEST_LOG = "ouzel.api.http.request_log"


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(api_key=("sk-of-the-test",))) as server:
        yield server


def connect(server: RunningServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port))


def receive_all(connection: socket.socket) -> bytes:
    """Receives all bytes until the server closes the connection."""
    pieces = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def send_and_receive(server: RunningServer, *pieces: bytes) -> bytes:
    """Sends the pieces and receives all bytes until the server closes the connection."""
    with connect(server) as connection:
        for piece in pieces:
            connection.sendall(piece)
        return receive_all(connection)


def read_refusal(answer: bytes, status: int) -> dict[str, str]:
    """Returns the error object of the only answer; checks its status and its headers."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0].startswith(f"http/1.1 {status} ".encode()), answer
    assert {
        b"connection: close",
        b"content-type: application/json",
        b"content-length: %d" % len(body),
    } <= {*lines}
    assert sum(line.startswith(b"x-request-id: ") for line in lines) == 1
    error: dict[str, str] = json.loads(body)["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


def build_head(num_bytes: int, *, ends: bool = True) -> bytes:
    beginning = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: "
    return beginning + b"x" * (num_bytes - len(beginning)) + (b"\r\n\r\n" if ends else b"")


@pytest.mark.parametrize(
    "head",
    [
        build_head(70_000),
        build_head(70_000, ends=False),
        build_head(400_000),
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 100 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 101,
        WEBSOCKET + b"a: b\r\n" * 100 + b"\r\n",
    ],
    ids=[
        "long",
        "long, unfinished",
        "very long",
        "long URL",
        "many",
        "many, unfinished",
        "many of a WebSocket",
    ],
)
def test_a_head_that_is_too_large_is_a_431(guarded: RunningServer, head: bytes) -> None:
    error = read_refusal(send_and_receive(guarded, head), 431)
    assert "65536 bytes" in error["message"] or "100 headers" in error["message"]
    assert (error["type"], error["code"]) == (
        "invalid_request_error",
        "request_header_fields_too_large",
    )


def test_a_head_as_large_as_may_be_is_read(guarded: RunningServer) -> None:
    headers = b"".join(b"a%d: b\r\n" % number for number in range(97))
    ends = b"Connection: close\r\n\r\n"
    for head in (build_head(2**16 - 50, ends=False) + b"\r\n", GET[:-2] + headers):
        assert send_and_receive(guarded, head + ends).startswith(b"HTTP/1.1 200 ")
    assert send_and_receive(guarded, *(bytes([byte]) for byte in GET_AND_CLOSE)).startswith(
        b"HTTP/1.1 200 "
    )


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x00",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
        b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n"
        b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    ],
)
def test_malformed_http_is_a_400_and_one_line_in_the_log(
    guarded: RunningServer, nonsense: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    error = read_refusal(send_and_receive(guarded, nonsense), 400)
    assert error["message"].startswith("this is no request in HTTP/1.1: ")
    wait_until(lambda: "- - 400 duration_s=" in caplog.text)
    assert [(record.name, record.levelname) for record in caplog.records] == [(REQUEST_LOG, "INFO")]


def test_a_broken_body_is_a_400_of_its_request(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    error = read_refusal(send_and_receive(server, head, b"1\r\n{\r\n", b"no length\r\n"), 400)
    assert error["message"].startswith("this is no request in HTTP/1.1: ")
    wait_until(lambda: f"POST {PATH} 400 duration_s=" in caplog.text)


CHUNKED = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n".encode()
CHUNKED_BODY = b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize(
    "rest",
    [
        CHUNKED_BODY + b"a: b\r\n" * 200_000,
        CHUNKED_BODY + b"a: " + b"b" * 2**20,
        b"1;" + b"a" * 2**20,
    ],
    ids=["trailers", "a long trailer", "a long extension"],
)
def test_the_framing_of_a_body_is_bounded(server: RunningServer, rest: bytes) -> None:
    error = read_refusal(send_and_receive(server, CHUNKED + b"\r\n", rest), 431)
    assert "trailers" in error["message"] and "<= 65536 bytes" in error["message"]


def test_trailers_are_no_headers(guarded: RunningServer) -> None:
    key = b"Authorization: Bearer sk-of-the-test\r\n"
    trailed = CHUNKED + b"Connection: close\r\n\r\n" + CHUNKED_BODY + key + b"\r\n"
    assert read_refusal(send_and_receive(guarded, trailed), 401)["code"] == "invalid_api_key"
    assert (
        send_and_receive(
            guarded, CHUNKED + key + b"Connection: close\r\n\r\n" + CHUNKED_BODY + b"\r\n"
        )[9:12]
        == b"200"
    )


def test_nonsense_after_a_request_waits_for_its_answer(server: RunningServer) -> None:
    answers = send_and_receive(server, POST + BODY + b"\x00\x01")
    first, _, second = answers[5:].partition(b"HTTP/1.1 ")
    assert b"chat.completion" in first
    read_refusal(b"HTTP/1.1 " + second, 400)


LONG = json.dumps({"model": "parrot", "prompt": "abc", "max_tokens": 19_000}).encode()
POST_LONG = (
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: %d\r\n\r\n" % len(LONG) + LONG
)
POST_LARGE = POST.replace(b"%d" % len(BODY), b"400000")


@pytest.mark.parametrize(
    "rest",
    [GET, POST_LARGE + b" " * 2**17, POST_LARGE + b" " * 400_000, b"\x00" + b" " * 2**20],
    ids=["a request", "a large body", "too large a body", "nonsense"],
)
def test_a_client_that_leaves_is_noticed_whatever_it_has_sent_besides(
    rest: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    with running_server(SLOW) as server:
        with connect(server) as connection:
            connection.sendall(POST_LONG)
            wait_until(lambda: server.engine.num_unfinished == 1)
            connection.sendall(rest)
        wait_until(lambda: "POST /v1/completions " in caplog.text)
        assert "POST /v1/completions 499 " in caplog.text
        assert server.engine.num_unfinished == 0


def test_bodies_that_wait_for_answers_to_earlier_requests_are_bounded() -> None:
    with running_server(SLOW) as server:
        first = POST_LONG.replace(b"19000", b"  500")

        def is_refused() -> bool:
            """Tells whether the second answer is a 429; the first can come before the bodies."""
            answers = send_and_receive(
                server, first, POST_LARGE + b" " * 400_000 + GET_AND_CLOSE
            ).split(b"HTTP/1.1 ")
            return [answer[:3] for answer in answers[1:]] == [b"200", b"429"]

        wait_until(is_refused)


def test_only_so_many_requests_may_wait_for_answers_to_earlier_ones(server: RunningServer) -> None:
    answers = send_and_receive(server, POST + BODY + GET * 40).split(b"HTTP/1.1 ")
    assert [answer[:3] for answer in answers[1:]] == [b"200"] * 17 + [b"429"]


@pytest.mark.parametrize(
    "header",
    [
        b"Sec-WebSocket-Key: \xff\xfe",
        b"Sec-WebSocket-Key: \xc3\xbc\xc3\xbc",
        b"Sec-WebSocket-Key: c2hvcnQ=",
        b"Sec-WebSocket-Protocol: \xff",
        b"Sec-WebSocket-Protocol: a b",
        b"Sec-WebSocket-Version: 12",
        b"X-Long: " + b"x" * 9000,
    ],
)
def test_a_websocket_that_cannot_be_opened_is_told_why(
    guarded: RunningServer, header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    headers = {
        b"Sec-WebSocket-Version": b"13",
        b"Sec-WebSocket-Key": base64.b64encode(bytes(16)),
        **dict([header.split(b": ")]),
    }
    lines = [name + b": " + value + b"\r\n" for name, value in headers.items()]
    read_refusal(
        send_and_receive(guarded, WEBSOCKET + b"".join(lines) + b"\r\n"),
        431 if b"Long" in header else 400,
    )
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


OFFER = (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
)


@pytest.mark.parametrize("split_at", [None, 30, -len(BODY) - 1, -len(BODY), -5])
def test_an_offer_of_another_protocol_is_passed_over(
    server: RunningServer, split_at: int | None
) -> None:
    request = POST[:-2] + OFFER + b"\r\n" + BODY
    answers = send_and_receive(
        server, request[:split_at], request[split_at:] if split_at else b"", GET_AND_CLOSE
    )
    assert answers.count(b"HTTP/1.1 200 ") == 2 and answers.count(b"HTTP/1.1 ") == 2
    assert b"chat.completion" in answers


@pytest.mark.parametrize(
    "request_head",
    [
        POST[:-2] + OFFER.replace(b"Upgrade,", b"Upgrade, close,") + b"\r\n" + BODY,
        CHUNKED + OFFER.replace(b"Upgrade,", b"close, upgrade,") + b"\r\n" + CHUNKED_BODY + b"\r\n",
        (POST[:-2] + OFFER + b"\r\n" + BODY) * 3 + GET_AND_CLOSE,
        GET[:-2] + OFFER.replace(b"h2c", b"TLS/1.2, websocket") + b"\r\n" + GET_AND_CLOSE,
    ],
    ids=["closes", "chunked", "again and again", "others"],
)
def test_a_request_with_an_offer_is_answered_as_any_other(
    server: RunningServer, request_head: bytes
) -> None:
    answers = send_and_receive(server, request_head)
    assert (
        answers.count(b"HTTP/1.1 200 ")
        == answers.count(b"HTTP/1.1 ")
        == request_head.count(b" HTTP/1.1\r\n")
    )


def test_a_key_of_strange_bytes_is_a_wrong_key(guarded: RunningServer) -> None:
    for key in (b"Bearer \xff\xfe", "Bearer ü".encode()):
        asked = (
            GET_AND_CLOSE.replace(b"health", b"v1/models")[:-2]
            + b"Authorization: "
            + key
            + b"\r\n\r\n"
        )
        assert read_refusal(send_and_receive(guarded, asked), 401)["code"] == "invalid_api_key"
