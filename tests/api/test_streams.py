"""Streams end in order when clients leave or read slowly, engines fail, or the server is full."""

import json
import logging
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import psutil
import pytest

from ouzel.config import LimitsConfig
from tests.api.requests import chat, join_content, read_error, read_events, sum_metric, wait_until
from tests.api.serving import RunningServer, running_server

FOREVER = {"model": "parrot", "prompt": "abc", "max_tokens": 19_000, "stream": True}


def num_running(server: RunningServer) -> int:
    stats = server.engine.stats()
    return 0 if stats is None else stats.num_running


def num_established(server: RunningServer) -> int:
    """Returns the number of connections that the server has not closed."""
    connections = psutil.Process().net_connections("tcp4")
    return sum(
        each.laddr.port == server.port and each.status == psutil.CONN_ESTABLISHED
        for each in connections
    )


def send_raw(
    server: RunningServer, body: dict[str, object], path: str = "/v1/completions"
) -> socket.socket:
    """Sends a request over a connection that receives few bytes ahead of the reader.

    The buffer shrinks before the handshake, which tells the server its size. A buffer that shrinks
    later drops packets that are on their way, and the kernel then waits for up to 120 s before it
    sends them again.
    """
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    content = json.dumps(body).encode()
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\n".encode()
        + f"content-length: {len(content)}\r\n\r\n".encode()
        + content
    )
    return connection


def read_to_end(connection: socket.socket) -> str:
    received = b""
    with connection:
        while not received.endswith(b"0\r\n\r\n"):
            received += connection.recv(65536)
    return received.decode()


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_disconnect_aborts(is_stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    with running_server({"step_s": 0.001, "max_model_len": 20_000}) as server:
        connection = send_raw(server, {**FOREVER, "stream": is_stream, "n": 2})
        wait_until(lambda: num_running(server) == 2)
        connection.close()
        wait_until(lambda: num_running(server) == 0 and server.engine.num_unfinished == 0)
        exposition = httpx.get(f"{server.url}/metrics").text
        assert sum_metric(exposition, "ouzel_num_aborts_total") == 2
    assert "POST /v1/completions 499 " in caplog.text
    assert "finish=abort,abort" in caplog.text


def test_a_slow_client_gets_fewer_larger_chunks() -> None:
    with running_server({"max_model_len": 20_000}) as server:
        server.shrink_send_buffers()
        connection = send_raw(server, {**FOREVER, "max_tokens": 6000})
        wait_until(lambda: server.engine.stats() is not None and num_running(server) == 0)
        text = read_to_end(connection)
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert len(chunks) < 3000
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "abc" * 2000


def test_a_client_that_never_reads_gives_its_place_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    # 400,000 characters fill every buffer on the way, even if they come in few chunks
    num_tokens = 400_000
    with running_server(
        {"max_model_len": 2 * num_tokens}, LimitsConfig(write_timeout_s=0.1)
    ) as server:
        server.shrink_send_buffers()
        with send_raw(server, {**FOREVER, "max_tokens": num_tokens}):
            wait_until(lambda: "POST /v1/completions 499 " in caplog.text)
            assert server.engine.num_unfinished == 0
            wait_until(lambda: num_established(server) == 0)
    assert "finish=abort" in caplog.text
    assert "without completing" not in caplog.text


def test_a_client_that_reads_slowly_is_waited_for() -> None:
    num_tokens = 20_000
    with running_server(
        {"max_model_len": 2 * num_tokens}, LimitsConfig(write_timeout_s=2.0)
    ) as server:
        server.shrink_send_buffers()
        with send_raw(server, {**FOREVER, "max_tokens": num_tokens}) as connection:
            wait_until(lambda: num_running(server) == 0)
            text = b""
            read_at, longest_pause_s = time.monotonic(), 0.0
            while not text.endswith(b"\r\n0\r\n\r\n"):
                longest_pause_s = max(longest_pause_s, time.monotonic() - read_at)
                read_at = time.monotonic()
                piece = connection.recv(2**14)
                if not piece and longest_pause_s > 0.5:
                    return  # the machine was busy, and the client itself was late
                assert piece
                text += piece
                time.sleep(0.005)
    assert b"data: [DONE]" in text


def test_an_error_after_the_first_chunk_is_one_frame_and_the_end(http: httpx.Client) -> None:
    events = read_events(http.post("/v1/chat/completions", json=chat("ab<|fail|>", stream=True)))
    assert [json.loads(event).keys() >= {"choices"} for event in events] == [True, False]
    error = json.loads(events[-1])["error"]
    assert error["message"] == "scripted failure"
    assert error["type"] == "server_error"
    assert error["code"] == "engine_failed"


def test_an_error_comes_after_its_tokens_however_late_they_are_read(http: httpx.Client) -> None:
    def fail(_: int) -> list[str]:
        return read_events(http.post("/v1/chat/completions", json=chat("ab<|fail|>", stream=True)))

    # on a busy machine the server reads a token and the error at once
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(fail, range(100)))
    assert {
        (join_content(events[:-1]), "error" in json.loads(events[-1])) for events in answers
    } == {("a", True)}


def test_a_failing_choice_ends_the_stream(http: httpx.Client) -> None:
    events = read_events(
        http.post("/v1/chat/completions", json=chat("ab<|fail|>", stream=True, n=3))
    )
    assert sum("error" in json.loads(event) for event in events) == 1
    assert "error" in json.loads(events[-1])


def test_the_official_client_raises_on_an_error_frame(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="parrot", messages=[{"role": "user", "content": "ab<|fail|>"}], stream=True
    )
    with pytest.raises(openai.APIError, match="scripted failure"):
        list(stream)


def test_a_unary_request_that_fails_is_a_500(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json=chat("ab<|fail|>"))
    assert response.status_code == 500
    assert read_error(response)["message"] == "scripted failure"


@pytest.mark.parametrize("bug", ["#", "\a"])
def test_a_bug_of_ours_is_a_500_that_tells_only_the_log(
    http: httpx.Client, caplog: pytest.LogCaptureFixture, bug: str
) -> None:
    unary = http.post("/v1/chat/completions", json=chat(bug))
    assert unary.status_code == 500
    begins_before_it_fails = chat("a" * 2000 + bug, stream=True)
    streamed = json.loads(
        read_events(http.post("/v1/chat/completions", json=begins_before_it_fails))[-1]
    )
    assert read_error(unary) == streamed["error"]
    assert streamed["error"]["type"] == "server_error"
    assert "detail" not in unary.text
    assert "a detail for the log" in caplog.text


def test_a_full_server_refuses_at_the_door() -> None:
    limits = LimitsConfig(max_queued_requests=0)
    with running_server(
        {"step_s": 0.001, "max_num_seqs": 1, "max_model_len": 20_000}, limits
    ) as server:
        connection = send_raw(server, FOREVER)
        wait_until(lambda: num_running(server) == 1)
        response = httpx.post(f"{server.url}/v1/chat/completions", content=b"not even JSON")
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        assert read_error(response)["type"] == "rate_limit_error"
        assert (
            sum_metric(httpx.get(f"{server.url}/metrics").text, "ouzel_requests_refused_total") == 1
        )
        connection.close()
        wait_until(lambda: server.engine.num_unfinished == 0)
        assert httpx.post(f"{server.url}/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_a_dead_engine_is_told_and_comes_back() -> None:
    with (
        running_server({"step_s": 0.001, "max_model_len": 20_000}) as server,
        httpx.Client(timeout=None) as http,
    ):
        connection = send_raw(server, FOREVER)
        wait_until(lambda: num_running(server) == 1)
        response = http.post(f"{server.url}/v1/chat/completions", json=chat("<|die|>"))
        assert response.status_code == 500
        assert read_error(response)["code"] == "engine_failed"
        frames = read_to_end(connection).split("data: ")
        assert "engine_failed" in frames[-1]
        wait_until(lambda: http.get(f"{server.url}/health").status_code == 200)
        assert http.post(f"{server.url}/v1/chat/completions", json=chat("Hi")).status_code == 200
        assert (
            sum_metric(http.get(f"{server.url}/metrics").text, "ouzel_engine_restarts_total") == 1
        )


def test_a_hung_engine_is_told_and_comes_back() -> None:
    options = {
        "step_s": 0.001,
        "max_model_len": 20_000,
        "hanging_token_id": ord("?"),
        "hanging_s": 4,
    }
    with (
        running_server(options, step_timeout_s=1.5) as server,
        httpx.Client(base_url=server.url, timeout=None) as http,
    ):
        connection = send_raw(server, FOREVER)
        wait_until(lambda: num_running(server) == 1)
        response = http.post("/v1/chat/completions", json=chat("?"))
        health = http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "restarting")
        assert re.search(
            r"the engine hangs \(a step has taken \d+ s, the limit is 1.5 s\)",
            health.json()["reason"],
        )
        assert [http.get(path).status_code for path in ("/ping", "/v2/health/ready")] == [503, 503]
        assert sum_metric(http.get("/metrics").text, "ouzel_engine_step_age_seconds") > 1.5
        assert response.status_code == 500
        assert read_error(response)["code"] == "engine_failed"
        assert "engine_failed" in read_to_end(connection).split("data: ")[-1]
        wait_until(lambda: http.get("/health").status_code == 200)
        assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_while_draining_running_requests_end_and_new_ones_are_refused() -> None:
    with running_server({"step_s": 0.001}) as server, httpx.Client(timeout=None) as http:
        connection = send_raw(server, {**FOREVER, "max_tokens": 200})
        wait_until(lambda: num_running(server) == 1)
        server.run(server.engine.drain(60))
        assert "[DONE]" in read_to_end(connection)
        health = http.get(f"{server.url}/health")
        assert (health.status_code, health.json()["status"]) == (503, "draining")
        response = http.post(f"{server.url}/v1/chat/completions", json=chat("Hi"))
        assert response.status_code == 503
        assert response.headers["retry-after"] == "2"
        assert read_error(response)["code"] == "engine_unavailable"


def test_many_streams_at_once_do_not_mix(server: RunningServer) -> None:
    bodies = [chat(f"{number} " * number, stream=True) for number in range(1, 33)]
    connections = [send_raw(server, body, "/v1/chat/completions") for body in bodies]
    for number, connection in enumerate(connections, start=1):
        lines = read_to_end(connection).splitlines()
        chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        content = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        assert content == f"{number} " * number
