"""WebSockets of a client, with every event checked against the official client's own types."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pydantic
from openai.types.responses import Response, ResponsesServerEvent
from websockets.sync.client import ClientConnection, connect

from tests.api.requests import Json
from tests.api.responses.strict import check

_EVENT: pydantic.TypeAdapter[ResponsesServerEvent] = pydantic.TypeAdapter(ResponsesServerEvent)
_ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, kind: str, **fields: object) -> None:
        self.connection.send(json.dumps({"type": kind, **fields}))

    def create(self, said: str | list[Json], **fields: object) -> None:
        self.send("response.create", model="parrot", input=said, **fields)

    def event(self) -> ResponsesServerEvent:
        text = self.connection.recv(decode=True)
        event = _EVENT.validate_json(text, strict=True)
        check(event, allowed={"obfuscation"} if event.type.endswith(".delta") else set())
        assert event.stream_id is not None or "stream_id" not in json.loads(text)
        return event

    def until(self, *kinds: str) -> list[ResponsesServerEvent]:
        events = [self.event()]
        while events[-1].type not in kinds:
            events.append(self.event())
        return events

    def events(self) -> list[ResponsesServerEvent]:
        """Receives events up to the end of a response, or up to an error."""
        return self.until(*_ENDS)

    def response(self, said: str | list[Json], **fields: object) -> Response:
        self.create(said, **fields)
        return read_ended_response(self.events()[-1])


def read_ended_response(event: ResponsesServerEvent) -> Response:
    assert event.type in ("response.completed", "response.incomplete", "response.failed"), event
    return event.response


def read_error_event(event: ResponsesServerEvent) -> Json:
    """Returns the status and the fields of an error event, without null fields."""
    assert event.type == "error", event
    assert event.status is not None
    return {
        "status": event.status,
        **{name: value for name, value in event.error.to_dict().items() if value},
    }


@contextmanager
def connect_socket(url: str, *, path: str = "/v1/responses", **options: object) -> Iterator[Socket]:
    """Opens a WebSocket without time limits; `url` is the server's HTTP address."""
    uri = f"ws{url.removeprefix('http')}{path}"
    limits = {"open_timeout": None, "close_timeout": None, "ping_interval": None, "max_size": None}
    with connect(uri, **(limits | options)) as connection:  # type: ignore[arg-type]
        assert isinstance(connection, ClientConnection)
        yield Socket(connection)
