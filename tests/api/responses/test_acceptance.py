"""A streamed response begins when its request is accepted.

The client has the id before the engine computes anything. The engine is real; its device can be
paused by a test, and fails at a step whose tokens spell "Fail!".
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any  # JSON

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from tests.api.byte_tokens import END, byte_library_tokenizer
from tests.api.requests import read_error, wait_until
from tests.api.responses.sockets import Socket, connect_socket, read_ended_response
from tests.api.responses.strict import strict_event, strict_response
from tests.api.serving import RunningServer, running_server
from tests.grammar.tokenizers import saved_for_grammars

Json = dict[str, Any]
LONG = "Tell me of owls. " * 765  # 13,005 tokens
BEGUN = ["response.created", "response.in_progress"]
FACTORY = "tests.api.responses.test_acceptance:create_pausable_engine"
_device_may_compute = threading.Event()


class PausableRunner(FakeRunner):
    def __init__(self) -> None:
        super().__init__(
            vocab_size=260,
            num_blocks=4096,
            max_model_len=16_000,
            max_num_seqs=2,
            max_num_batched_tokens=512,
        )

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        _device_may_compute.wait()
        # a sampled token can be any token, but is alone in its step, so it cannot spell "Fail!"
        if "Fail!" in "".join(map(chr, batch.token_ids)):
            raise RuntimeError("the device failed")
        return super().run(batch)


def create_pausable_engine(options: dict[str, object]) -> EngineCore:
    tokenizer = saved_for_grammars(byte_library_tokenizer(), 260, END)
    return EngineCore(PausableRunner(), grammars=GrammarCompiler(tokenizer, timeout_s=60))


@pytest.fixture(autouse=True)
def _resume_device() -> Iterator[None]:
    _device_may_compute.set()
    yield
    _device_may_compute.set()


@contextmanager
def pause_device() -> Iterator[None]:
    """Keeps the device from computing inside the `with` block."""
    _device_may_compute.clear()
    try:
        yield
    finally:
        _device_may_compute.set()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('acceptance')}/responses.sqlite3"
    with running_server(engine_factory=FACTORY, store_url=url) as server:
        yield server


@pytest.fixture(scope="module")
def storeless_server() -> Iterator[RunningServer]:
    """Yields a server without a store."""
    with running_server(engine_factory=FACTORY) as server:
        yield server


@pytest.fixture(params=["kept", "not kept", "no store"])
def server_and_fields(request: pytest.FixtureRequest) -> tuple[RunningServer, Json]:
    """Returns a server and the fields of a request, with and without a store."""
    name = "storeless_server" if request.param == "no store" else "server"
    server: RunningServer = request.getfixturevalue(name)
    return server, {"store": False} if request.param == "not kept" else {}


def build_body(text: str = LONG, **fields: object) -> Json:
    """Builds a greedy request: a sampled token could end the answer or fail the device."""
    limits: Json = {"max_output_tokens": 2, "ignore_eos": True, "temperature": 0}
    return {"model": "parrot", "input": text, "stream": True, **limits, **fields}


class Stream:
    """The events of a streamed response, read one by one."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.read()
        self._lines = answer.iter_lines()

    def event(self) -> Json:
        name = next(line for line in self._lines if line.startswith("event: ")).removeprefix(
            "event: "
        )
        data = next(self._lines).removeprefix("data: ")
        strict_event(name, data)
        event: Json = json.loads(data)
        return event

    def until(self, name: str) -> list[Json]:
        events = [self.event()]
        while events[-1]["type"] != name:
            events.append(self.event())
        return events

    def rest(self) -> str:
        return "\n".join(self._lines)


@contextmanager
def open_stream(http: httpx.Client, body: Json) -> Iterator[Stream]:
    with http.stream("POST", "/v1/responses", json=body) as answer:
        yield Stream(answer)


def list_types(events: list[Json]) -> list[str]:
    return [event["type"] for event in events]


def wait_until_free(server: RunningServer) -> None:
    def is_free() -> bool:
        stats = server.engine.stats()
        return (
            server.engine.num_unfinished == 0 and stats is not None and stats.num_used_blocks == 0
        )

    wait_until(is_free)


def test_a_response_is_cancelled_by_its_id_before_its_first_token(
    server_and_fields: tuple[RunningServer, Json],
) -> None:
    server, fields = server_and_fields
    with (
        server.client() as http,
        server.client() as other,
        pause_device(),
        open_stream(http, build_body(**fields)) as stream,
    ):
        events = [stream.event(), stream.event()]
        response_id = events[0]["response"]["id"]

        cancelled = strict_response(other.post(f"/v1/responses/{response_id}/cancel").text)

        events += stream.until("response.incomplete")
        assert "[DONE]" in stream.rest()
    assert list_types(events) == [*BEGUN, "response.incomplete"]
    assert (cancelled.status, cancelled.output) == ("cancelled", [])
    assert strict_response(json.dumps(events[-1]["response"])) == cancelled
    wait_until_free(server)


def test_a_response_without_store_is_gone_after_its_end(server: RunningServer) -> None:
    with (
        server.client() as http,
        pause_device(),
        open_stream(http, build_body(store=False)) as stream,
    ):
        response_id = stream.event()["response"]["id"]
        with server.client() as other:
            assert other.get(f"/v1/responses/{response_id}").status_code == 404
            assert other.delete(f"/v1/responses/{response_id}").status_code == 404
            assert other.post(f"/v1/responses/{response_id}/cancel").status_code == 200
            wait_until(lambda: other.post(f"/v1/responses/{response_id}/cancel").status_code == 404)


def test_a_response_goes_on_from_its_beginning_to_its_end(
    server_and_fields: tuple[RunningServer, Json],
) -> None:
    server, fields = server_and_fields
    with server.client() as http:
        with pause_device():
            opened = http.send(
                http.build_request("POST", "/v1/responses", json=build_body("Hi", **fields)),
                stream=True,
            )
            stream = Stream(opened)
            events = [stream.event(), stream.event()]
        events += stream.until("response.incomplete")
        opened.close()
    assert list_types(events)[:3] == [*BEGUN, "response.output_item.added"]
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_a_failure_after_the_beginning_is_an_event_and_is_stored(server: RunningServer) -> None:
    with server.client() as http, open_stream(http, build_body("Fail!")) as stream:
        events = stream.until("response.failed")
        assert "[DONE]" in stream.rest()
        failed = events[-1]["response"]
        assert list_types(events) == [*BEGUN, "response.failed"]
        assert (failed["id"], failed["error"]["code"]) == (
            events[0]["response"]["id"],
            "server_error",
        )
        assert "the device failed" in failed["error"]["message"]
        assert http.get(f"/v1/responses/{failed['id']}").json() == failed
    wait_until_free(server)


def test_a_failure_of_an_answer_without_stream_is_a_status_and_not_stored(
    server: RunningServer,
) -> None:
    with server.client() as http:
        answer = http.post("/v1/responses", json=build_body("Fail!", stream=False))
    assert answer.status_code == 500
    wait_until_free(server)


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"input": LONG * 2}, 400, "input"),
        ({"model": "another"}, 404, "model"),
        ({"max_output_tokens": 0}, 400, "max_output_tokens"),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "no"}}}},
            400,
            "text.format",
        ),
        ({"regex": "("}, 400, "regex"),
        ({"grammar": "root ::= x"}, 400, "grammar"),
    ],
)
def test_a_request_that_is_wrong_is_a_status(
    server: RunningServer, fields: Json, status: int, param: str
) -> None:
    with server.client() as http:
        answer = http.post("/v1/responses", json=build_body() | fields)
    assert (answer.status_code, str(read_error(answer)["param"])[: len(param)]) == (status, param)
    wait_until_free(server)


def test_a_grammar_that_only_the_engine_refuses_is_a_status(server: RunningServer) -> None:
    with server.client() as http:
        answer = http.post("/v1/responses", json=build_body("Hi", regex="[z-a]"))
    assert answer.status_code == 400
    # the engine writes this message
    assert read_error(answer)["message"].startswith("regex: invalid regex")
    wait_until_free(server)


def test_a_response_with_a_grammar_begins_when_that_is_compiled(server: RunningServer) -> None:
    body = build_body() | {"text": {"format": {"type": "json_object"}}}
    with server.client() as http, pause_device(), open_stream(http, body) as stream:
        assert list_types([stream.event(), stream.event()]) == BEGUN
    wait_until_free(server)


def test_a_full_server_is_a_status() -> None:
    with (
        running_server(
            limits=LimitsConfig(max_queued_requests=1), engine_factory=FACTORY
        ) as server,
        server.client() as http,
        pause_device(),
        open_stream(http, build_body()) as first,
        open_stream(http, build_body()) as second,
        open_stream(http, build_body()) as third,
    ):
        assert (
            list_types([stream.event() for stream in (first, second, third)])
            == ["response.created"] * 3
        )
        refused = http.post("/v1/responses", json=build_body())
        assert (refused.status_code, read_error(refused)["code"]) == (429, "overloaded")


def test_a_client_that_leaves_before_the_first_token_cancels(server: RunningServer) -> None:
    with server.client() as http:
        with pause_device(), open_stream(http, build_body()) as stream:
            response_id = stream.event()["response"]["id"]
        wait_until(lambda: http.get(f"/v1/responses/{response_id}").json()["status"] == "cancelled")
    wait_until_free(server)


def test_a_response_in_the_background_is_queued_until_its_first_token(
    server: RunningServer,
) -> None:
    with server.client() as http, server.client() as other:
        with pause_device(), open_stream(http, build_body(background=True)) as stream:
            events = [stream.event(), stream.event()]
            response_id = events[0]["response"]["id"]
            assert other.get(f"/v1/responses/{response_id}").json()["status"] == "queued"
            other.post(f"/v1/responses/{response_id}/cancel")
            events += stream.until("response.incomplete")
        assert list_types(events) == ["response.created", "response.queued", "response.incomplete"]
    wait_until_free(server)


@pytest.fixture
def socket(server: RunningServer) -> Iterator[Socket]:
    with connect_socket(server.url) as socket:
        yield socket


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("way", ["message", "HTTP"])
def test_a_response_of_a_socket_is_cancelled_before_its_first_token(
    server: RunningServer, socket: Socket, store: bool, way: str
) -> None:
    with pause_device():
        socket.create(LONG, store=store)
        [created] = socket.until("response.created")
        assert created.type == "response.created"
        if way == "message":
            socket.send("response.cancel", response_id=created.response.id)
        else:
            answer = httpx.post(f"{server.url}/v1/responses/{created.response.id}/cancel")
            assert answer.json()["status"] == "cancelled"
        assert read_ended_response(socket.events()[-1]).status == "cancelled"
    wait_until_free(server)


def test_a_response_that_is_steered_before_its_first_token_gives_way(
    server: RunningServer, socket: Socket
) -> None:
    with pause_device():
        socket.create("Hi", max_output_tokens=2, temperature=0)
        [created] = socket.until("response.created")
        assert created.type == "response.created"
        socket.send("response.steer", previous_response_id=created.response.id, input="And you?")
        socket.until("response.steer.accepted")
    first = read_ended_response(socket.events()[-1])
    assert first.incomplete_details is not None
    assert (first.incomplete_details.reason, first.output) == ("steered", [])
    second = read_ended_response(socket.events()[-1])
    assert second.previous_response_id == first.id
    wait_until_free(server)


def test_another_key_cancels_nothing() -> None:
    config = ServerConfig(api_key=("sk-one", "sk-other"))
    with (
        running_server(config=config, engine_factory=FACTORY) as server,
        httpx.Client(
            base_url=server.url, timeout=None, headers={"authorization": "Bearer sk-one"}
        ) as http,
        pause_device(),
        open_stream(http, build_body()) as stream,
    ):
        path = f"/v1/responses/{stream.event()['response']['id']}/cancel"
        assert (
            httpx.post(server.url + path, headers={"authorization": "Bearer sk-other"}).status_code
            == 404
        )
        assert http.post(path).status_code == 200
