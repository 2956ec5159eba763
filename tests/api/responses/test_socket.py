"""A WebSocket carries responses one after the other, and several at the same time."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponsesServerEvent

from ouzel.config import LimitsConfig
from tests.api.requests import Json, wait_until
from tests.api.responses.sockets import (
    Socket,
    connect_socket,
    read_ended_response,
    read_error_event,
)
from tests.api.responses.strict import check_lives, named_events, remove_ids, strict_response
from tests.api.responses.test_response import SAYINGS, build_request
from tests.api.serving import RunningServer, running_server


@pytest.fixture
def socket(server: RunningServer) -> Iterator[Socket]:
    """Yields a WebSocket to a server without a store."""
    with connect_socket(server.url) as socket:
        yield socket


@pytest.fixture
def thinker_socket(thinker: RunningServer) -> Iterator[Socket]:
    with connect_socket(thinker.url) as socket:
        yield socket


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('slow')}/responses.sqlite3"
    with running_server({"step_s": 0.01, "max_model_len": 8192}, store_url=url) as server:
        yield server


@pytest.fixture
def slow_socket(slow: RunningServer) -> Iterator[Socket]:
    with connect_socket(slow.url) as socket:
        yield socket


@pytest.mark.parametrize("path", ["/v1", "/v3", "/v3/v1"])
def test_the_client_converses(server: RunningServer, path: str) -> None:
    with (
        openai.OpenAI(base_url=f"{server.url}{path}", api_key="none") as client,
        client.responses.connect() as connection,
    ):
        connection.response.create(model="parrot", input="Hello")
        first = next(event for event in connection if event.type == "response.completed").response
        connection.response.create(
            model="parrot", input="Bye", previous_response_id=first.id, store=False
        )
        second = next(event for event in connection if event.type == "response.completed").response
    assert (first.output_text, second.output_text) == ("Hello", "Bye")
    assert second.previous_response_id == first.id
    assert first.usage is not None and second.usage is not None
    assert second.usage.input_tokens > first.usage.total_tokens


async def test_the_asynchronous_client_converses(server: RunningServer) -> None:
    async with (
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
        client.responses.connect() as connection,
    ):
        await connection.response.create(model="parrot", input="Hello", stream_id="main")
        deltas = []
        async for event in connection:
            assert event.stream_id == "main"
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
            if event.type == "response.completed":
                break
    assert "".join(deltas) == "Hello"


@pytest.mark.parametrize("saying", SAYINGS)
def test_events_equal_the_events_of_a_stream(
    thinker_http: httpx.Client, thinker_socket: Socket, saying: str
) -> None:
    body = build_request(SAYINGS[saying], stream_options={"include_obfuscation": True}, store=False)
    streamed = named_events(thinker_http.post("/v1/responses", json={**body, "stream": True}))

    thinker_socket.send("response.create", **body)
    events = thinker_socket.events()

    check_lives(events)  # type: ignore[arg-type]  # those that only sockets have are not among them
    assert [event.sequence_number for event in events] == list(range(len(events)))
    is_delta = [event.type.endswith(".delta") for event in events]
    assert [event.to_dict().get("obfuscation") is not None for event in events] == is_delta
    whole = strict_response(json.dumps(json.loads(streamed[-1][1])["response"]))
    end = read_ended_response(events[-1])
    assert end.usage is not None and whole.usage is not None
    end.usage.input_tokens_details = whole.usage.input_tokens_details
    assert remove_ids(end) == remove_ids(whole)


def test_a_response_without_store_is_continued_on_its_connection_only(
    thinker: RunningServer, thinker_socket: Socket
) -> None:
    first = thinker_socket.response("Hello", store=False)
    second = thinker_socket.response("Bye", store=False, previous_response_id=first.id)
    again = thinker_socket.response("Or stay", store=False, previous_response_id=first.id)

    assert [response.output_text for response in (first, second, again)] == [
        "Hello",
        "Bye",
        "Or stay",
    ]
    assert again.usage is not None and second.usage is not None
    assert again.usage.input_tokens == second.usage.input_tokens + len("Or stay") - len("Bye")
    with connect_socket(thinker.url) as other:
        other.create("Bye", previous_response_id=second.id)
        refusal = read_error_event(other.event())
    assert (refusal["status"], refusal["code"]) == (404, "previous_response_not_found")
    assert refusal["message"] == f"Previous response with id '{second.id}' not found."
    assert refusal["param"] == "previous_response_id"


def test_the_memory_of_all_connections_is_bounded_and_the_oldest_response_goes_first() -> None:
    # all connections together remember four times `max_body_bytes_total`
    limits = LimitsConfig(max_body_bytes=2**14, max_body_bytes_total=2**14)
    with running_server({"max_model_len": 2**16}, limits) as server, ExitStack() as stack:

        def reply(socket: Socket, what: str, previous_id: str | None) -> Response | Json:
            socket.create(what, store=False, max_output_tokens=16, previous_response_id=previous_id)
            last = socket.events()[-1]
            return read_error_event(last) if last.type == "error" else read_ended_response(last)

        sockets = [stack.enter_context(connect_socket(server.url)) for _ in range(8)]
        long = ["x" * 10_000] * len(sockets)
        first = [reply(socket, what, None) for socket, what in zip(sockets, long, strict=True)]
        ids = [response.id for response in first if isinstance(response, Response)]
        forgotten = reply(sockets[0], "Hi", ids[0])
        assert isinstance(forgotten, dict) and forgotten["code"] == "previous_response_not_found"
        assert isinstance(reply(sockets[7], "Hi", ids[7]), Response)


def test_a_stored_response_is_found_by_every_connection(
    thinker: RunningServer, thinker_socket: Socket, thinker_http: httpx.Client
) -> None:
    first = thinker_socket.response("Hello")
    assert strict_response(thinker_http.get(f"/v1/responses/{first.id}").text) == first
    with connect_socket(thinker.url) as other:
        assert other.response("Bye", previous_response_id=first.id).previous_response_id == first.id


def test_a_stored_response_has_the_history_of_earlier_responses_without_store(
    thinker_socket: Socket, thinker_client: openai.OpenAI
) -> None:
    first = thinker_socket.response("Hello", store=False)
    second = thinker_socket.response("And?", store=False, previous_response_id=first.id)
    kept = thinker_socket.response("Bye", previous_response_id=second.id)
    assert kept.previous_response_id == second.id
    after = thinker_client.responses.create(
        model="parrot", input="Now", previous_response_id=kept.id
    )
    listed = thinker_client.responses.input_items.list(after.id, order="asc")
    texts = [json.loads(item.to_json())["content"][0]["text"] for item in listed]
    assert texts == ["Hello", "Hello", "And?", "And?", "Bye", "Bye", "Now"]


def test_a_call_is_answered(thinker_socket: Socket) -> None:
    first = thinker_socket.response(SAYINGS["call"], store=False, tools=build_request("")["tools"])
    [call] = first.output
    assert call.type == "function_call"
    output: Json = {"type": "function_call_output", "call_id": call.call_id, "output": "An owl."}
    second = thinker_socket.response([output], store=False, previous_response_id=first.id)
    assert second.status == "completed"


@pytest.mark.parametrize("store", [True, False])
def test_a_prompt_is_computed_for_later(thinker_socket: Socket, store: bool) -> None:
    long = "What an owl eats depends on what there is. " * 10
    warm = thinker_socket.response(long, generate=False, store=store)
    assert (warm.status, warm.output) == ("completed", [])
    assert warm.usage is not None
    assert (warm.usage.output_tokens, warm.usage.total_tokens) == (0, warm.usage.input_tokens)

    thinker_socket.send(
        "response.create", model="parrot", previous_response_id=warm.id, store=store
    )
    response = read_ended_response(thinker_socket.events()[-1])

    assert response.output_text == long
    assert response.usage is not None
    assert response.usage.input_tokens == warm.usage.input_tokens


def test_lanes_run_beside_each_other_and_each_in_order(slow_socket: Socket) -> None:
    slow_socket.create("a" * 60, stream_id="planner")
    slow_socket.create("b" * 60, stream_id="critic")
    slow_socket.create("c" * 60, stream_id="planner")
    slow_socket.create("d" * 60)
    events: list[ResponsesServerEvent] = []
    while sum(event.type == "response.completed" for event in events) < 4:
        events.append(slow_socket.event())

    lanes = {
        lane: [event for event in events if event.stream_id == lane]
        for lane in ("planner", "critic", None)
    }
    for lane_events in lanes.values():
        numbers = [event.sequence_number for event in lane_events]
        assert numbers == [number for length in measure_runs(numbers) for number in range(length)]
    texts: dict[str | None, list[str]] = {}
    for lane, lane_events in lanes.items():
        ends = [event for event in lane_events if event.type == "response.completed"]
        texts[lane] = [read_ended_response(event).output_text[0] for event in ends]
    assert texts == {"planner": ["a", "c"], "critic": ["b"], None: ["d"]}
    began = [event.stream_id for event in events if event.type == "response.created"]
    ends_at = next(
        number for number, event in enumerate(events) if event.type == "response.completed"
    )
    assert sorted(began[:3], key=str) == sorted(["planner", "critic", None], key=str)
    assert sum(event.type == "response.created" for event in events[:ends_at]) == 3


def measure_runs(numbers: list[int | None]) -> list[int]:
    """Returns the lengths of the runs of numbers that begin at 0."""
    starts = [at for at, number in enumerate(numbers) if number == 0]
    return [end - start for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True)]


def test_a_lane_forks_from_another(socket: Socket) -> None:
    first = socket.response("Hello", stream_id="planner")
    socket.create("Find gaps", stream_id="critic", previous_response_id=first.id)
    socket.create("Go on", stream_id="planner", previous_response_id=first.id)
    events: list[ResponsesServerEvent] = []
    while sum(event.type == "response.completed" for event in events) < 2:
        events.append(socket.event())
    ends = {
        event.stream_id: read_ended_response(event)
        for event in events
        if event.type == "response.completed"
    }
    assert (ends["critic"].output_text, ends["planner"].output_text) == ("Find gaps", "Go on")
    assert {response.previous_response_id for response in ends.values()} == {first.id}


def test_a_connection_has_so_many_lanes(socket: Socket) -> None:
    for number in range(32):
        assert socket.response("x", stream_id=f"lane-{number}").output_text == "x"
    socket.create("x", stream_id="lane-32")
    refusal = socket.event()
    assert refusal.stream_id == "lane-32"
    assert read_error_event(refusal)["code"] == "websocket_stream_limit_reached"
    assert (
        socket.response("x").output_text
        == socket.response("x", stream_id="lane-7").output_text
        == "x"
    )


def test_a_response_is_cancelled(slow: RunningServer, slow_socket: Socket) -> None:
    slow_socket.create("x" * 2000, stream_id="main")
    created = slow_socket.until("response.created")[-1]
    assert created.type == "response.created"
    slow_socket.until("response.output_text.delta")
    slow_socket.send("response.cancel", response_id=created.response.id)
    response = read_ended_response(slow_socket.events()[-1])
    assert response.status == "cancelled"
    assert 0 < len(response.output_text) < 2000
    assert httpx.get(f"{slow.url}/v1/responses/{response.id}").json()["status"] == "cancelled"
    slow_socket.send("response.cancel", response_id=response.id)
    assert response.id in str(read_error_event(slow_socket.event())["message"])


@pytest.mark.parametrize("is_rude", [False, True])
def test_a_client_that_leaves_cancels_its_responses(slow: RunningServer, is_rude: bool) -> None:
    with connect_socket(slow.url) as socket:
        for lane in ("a", "b"):
            socket.create("x" * 2000, stream_id=lane)
        ids: list[str] = []
        while len(ids) < 2:
            event = socket.event()
            if event.type == "response.created":
                ids.append(event.response.id)
        if is_rude:
            socket.connection.socket.close()
    wait_until(lambda: slow.engine.num_unfinished == 0)
    wait_until(lambda: {read_status(slow, response_id) for response_id in ids} == {"cancelled"})


def read_status(server: RunningServer, response_id: str) -> str:
    status: str = httpx.get(f"{server.url}/v1/responses/{response_id}").json()["status"]
    return status
