"""Steering gives a response in progress more input."""

import json
from collections.abc import Iterator

import pytest
from openai.types.responses import ResponsesServerEvent

from ouzel.config import LimitsConfig
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.requests import Json
from tests.api.responses.sockets import (
    Socket,
    connect_socket,
    read_ended_response,
    read_error_event,
)
from tests.api.responses.strict import check_lives
from tests.api.responses.test_response import SAYINGS, build_request
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

LONG_THOUGHT = "<think>" + "let me see " * 20 + "</think>It is an owl."
LONG_CALL = SAYINGS["call"].replace("}}", ', "why": "' + "x" * 300 + '"}}')
FAILED = "response.steer.failed"


@pytest.fixture(scope="module")
def slow_thinker() -> Iterator[RunningServer]:
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    options: dict[str, object] = {"max_model_len": 4096, "step_s": 0.005}
    with running_server(options, chat_template=QWEN, output_format=output_format) as server:
        yield server


@pytest.fixture
def socket(slow_thinker: RunningServer) -> Iterator[Socket]:
    with connect_socket(slow_thinker.url) as socket:
        yield socket


def begin(socket: Socket, what: str, **fields: object) -> tuple[str, list[ResponsesServerEvent]]:
    """Begins a response; returns its id and its events up to the first item."""
    socket.send("response.create", **build_request(what, **fields))
    events = socket.until("response.output_item.added")
    assert events[0].type == "response.created"
    return events[0].response.id, events


def steer(socket: Socket, response_id: str, given: object) -> None:
    socket.send("response.steer", previous_response_id=response_id, input=given)


def read_refusal(event: ResponsesServerEvent) -> tuple[str, object]:
    assert event.type == "response.steer.failed"
    return str(event.error.code), json.loads(event.to_json())["steer"]["input"]


def test_reasoning_is_finished_and_the_successor_reads_the_input(socket: Socket) -> None:
    response_id, events = begin(
        socket, LONG_THOUGHT, stream_id="main", metadata={"a": "b"}, instructions="Be brief."
    )
    steer(socket, response_id, "Look again")
    events += socket.events()
    [accepted] = [event for event in events if event.type == "response.steer.accepted"]
    assert accepted.steer.id.startswith("steer_")
    assert accepted.steer.previous_response_id == response_id

    first = read_ended_response(events[-1])
    assert (first.status, [item.type for item in first.output]) == ("incomplete", ["reasoning"])
    assert first.incomplete_details is not None and first.incomplete_details.reason == "steered"
    assert first.output[0].to_dict()["status"] == "completed"
    check_lives([event for event in events if event is not accepted])  # type: ignore[misc]

    second = read_ended_response(socket.events()[-1])
    assert (second.status, second.output_text) == ("completed", "Look again")
    assert (second.previous_response_id, second.metadata) == (response_id, {"a": "b"})
    assert second.instructions == "Be brief."
    assert {event.stream_id for event in events} == {"main"}
    assert first.usage is not None and second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens


def test_an_answer_is_finished_before_its_successor(socket: Socket) -> None:
    response_id, _ = begin(socket, "x" * 300)
    steer(socket, response_id, "First")
    steer(
        socket,
        response_id,
        [{"role": "user", "content": [{"type": "input_text", "text": "Second"}]}],
    )
    socket.create("Then", previous_response_id=None)
    first, second, third = (
        read_ended_response(socket.until("response.completed")[-1]) for _ in range(3)
    )
    assert [response.output_text for response in (first, second, third)] == [
        "x" * 300,
        "Second",
        "Then",
    ]
    assert (second.previous_response_id, third.previous_response_id) == (response_id, None)


def test_input_waits_for_the_output_of_a_call(socket: Socket) -> None:
    response_id, events = begin(socket, LONG_CALL)
    steer(socket, response_id, "Look at the tail too")
    events += socket.events()
    [accepted] = [event for event in events if event.type == "response.steer.accepted"]
    [call] = read_ended_response(events[-1]).output
    assert call.type == "function_call"
    pending = socket.event()
    assert pending.type == "response.steer.pending"
    assert (pending.reason, pending.steer) == ("waiting_for_required_input", pending.steer)
    assert pending.steer.to_dict() == accepted.steer.to_dict()
    [required] = [stub.to_dict() for stub in pending.required_input]
    assert required == {"type": "function_call_output", "call_id": call.call_id, "name": "look"}

    wrong: Json = {"type": "function_call_output", "call_id": "call_other", "output": "An owl."}
    socket.create([wrong], previous_response_id=response_id)
    assert read_error_event(socket.event())["status"] == 400
    right: Json = {"type": "function_call_output", "call_id": call.call_id, "output": "An owl."}
    both = [socket.response([right], previous_response_id=response_id) for _ in range(2)]
    with_input, without = (
        response.usage.input_tokens for response in both if response.usage is not None
    )
    assert with_input - without >= len("Look at the tail too")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "non-empty string"),
        ([], "non-empty list"),
        (["x"], "input[0] must be a user's message"),
        ([{"role": "system", "content": "x"}], "input[0] must be a user's message"),
        (
            [{"type": "function_call_output", "call_id": "c", "output": "x"}],
            "input[0] must be a user's message",
        ),
        ([{"role": "user", "content": 7}], "input[0].content"),
        ([{"role": "user", "content": "x", "id": "msg_1"}], 'given "id"'),
    ],
)
def test_unusable_input_is_given_back(socket: Socket, given: object, words: str) -> None:
    steer(socket, "resp_1", given)
    told = json.loads(socket.connection.recv())  # the client's type has no such inputs
    assert told["type"] == FAILED
    assert told["error"]["code"] == "invalid_input"
    assert words in told["error"]["message"]
    assert told["steer"] == {"previous_response_id": "resp_1", "input": given}


def test_only_a_running_response_is_steered(socket: Socket) -> None:
    steer(socket, "resp_1", "Look")
    assert read_refusal(socket.event()) == ("response_not_found", "Look")
    response = socket.response("Hello")
    steer(socket, response.id, "Look")
    assert read_refusal(socket.event()) == ("response_already_completed", "Look")


def test_so_much_waits_for_one_response(socket: Socket) -> None:
    response_id, _ = begin(socket, "x" * 300, stream_id="main")
    for number in range(17):
        steer(socket, response_id, f"{number}")
    refused = socket.until(FAILED)[-1]
    assert read_refusal(refused) == ("too_many_pending_steers", "16")
    assert refused.stream_id == "main"
    socket.until("response.completed")
    assert read_ended_response(socket.until("response.completed")[-1]).output_text == "15"


def test_input_for_a_response_that_is_cancelled_is_given_back(socket: Socket) -> None:
    response_id, _ = begin(socket, "x" * 3000)
    steer(socket, response_id, "Look")
    accepted = socket.until("response.steer.accepted")[-1]
    socket.send("response.cancel", response_id=response_id)
    assert read_ended_response(socket.events()[-1]).status == "cancelled"
    refused = socket.event()
    assert read_refusal(refused) == ("response_not_active", "Look")
    steer_id = accepted.to_dict()["steer"]["id"]  # type: ignore[index]
    assert refused.to_dict()["steer"]["id"] == steer_id  # type: ignore[index]


def test_input_that_the_model_cannot_read_is_given_back(socket: Socket) -> None:
    picture = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:,"}],
        }
    ]
    response_id, _ = begin(socket, "x" * 300)
    steer(socket, response_id, picture)
    socket.until("response.completed")
    # the client's type requires `detail` of an image, but the server does not
    told = json.loads(socket.connection.recv())
    assert (told["type"], told["error"]["code"]) == (FAILED, "successor_creation_failed")
    assert "reads text only" in told["error"]["message"]
    assert told["steer"]["input"] == picture
    assert socket.response("Hello").output_text == "Hello"


def test_input_that_waits_counts_towards_the_bytes_of_all_bodies() -> None:
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    options: dict[str, object] = {"max_model_len": 4096, "step_s": 0.02}
    limits = LimitsConfig(max_body_bytes=160_000, max_body_bytes_total=160_000)
    with (
        running_server(options, limits, chat_template=QWEN, output_format=output_format) as server,
        connect_socket(server.url) as first,
        connect_socket(server.url) as second,
    ):
        begun = [
            (socket, begin(socket, LONG_THOUGHT, store=False)[0]) for socket in (first, second)
        ]
        for socket, response_id in begun:
            steer(socket, response_id, "x" * 150_000)
        assert first.until("response.steer.accepted")
        code, given = read_refusal(second.until(FAILED)[-1])
        assert code == "too_many_pending_steers" and given == "x" * 150_000


def test_input_that_waits_for_a_tools_output_counts_too() -> None:
    options: dict[str, object] = {"max_model_len": 4096, "step_s": 0.02}
    limits = LimitsConfig(max_body_bytes=160_000, max_body_bytes_total=160_000)
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    with (
        running_server(options, limits, chat_template=QWEN, output_format=output_format) as server,
        connect_socket(server.url) as first,
        connect_socket(server.url) as second,
    ):
        response_id, _ = begin(first, LONG_CALL, store=False)
        steer(first, response_id, "x" * 150_000)
        first.until("response.steer.pending")
        response_id, _ = begin(second, LONG_THOUGHT, store=False)
        steer(second, response_id, "x" * 150_000)
        assert read_refusal(second.until(FAILED)[-1])[0] == "too_many_pending_steers"
