"""All our exceptions are one tree. Each class knows its HTTP status and its OpenAI `type` and `code`.

OuzelError
├── InvalidRequest            400  the client must change the request
│   ├── ContextLengthExceeded 400
│   ├── Unauthenticated       401
│   ├── ForeignOrigin         403
│   ├── ModelNotFound         404
│   ├── ResponseNotFound      404
│   │   └── PreviousResponseNotFound 404
│   ├── ConversationNotFound  404
│   ├── ItemNotFound          404
│   ├── HistoryLost           400  a response or conversation that this one continues is gone
│   ├── ConversationLocked    400
│   ├── InvalidStreamId       400
│   ├── StreamLimitReached    400
│   ├── SocketTooOld          400
│   ├── PayloadTooLarge       413
│   ├── UnsupportedEncoding   415
│   ├── BodyTimeout           408
│   ├── HeadTimeout           408
│   ├── HeadTooLarge          431
│   └── ForeignHost           403
├── TryLater                       try again after `retry_after_s`
│   ├── Overloaded            429
│   ├── TooManyConnections    503
│   ├── EngineUnavailable     503  the engine is starting, restarting or draining
│   └── StoreUnavailable      503  the database is full, locked or out of reach
├── EngineFailed              500  this request was lost to a fault of ours
├── ModelLoadError            –    at start-up: the model directory cannot be served
└── StoreOpenError            –    at start-up: the store cannot be used
"""

from asyncio import CancelledError
from typing import ClassVar, Self

UNEXPECTED = "the server failed on this request; its log says why"  # all that a client is told of a bug of ours
# They end what runs. Every other BaseException is a fault: native libraries panic with what is no Exception.
STOPS = (CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_MAX_SHOWN = 100
_FIRST_SERVER_STATUS = 500


def _shortened(client_id: str) -> str:
    """Cuts what a client sent as an id, which may be any text."""
    return client_id if len(client_id) <= _MAX_SHOWN else f"{client_id[:_MAX_SHOWN]}…"


class OuzelError(Exception):
    """All others derive from this; `str(error)` is the message a user may read."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str | None] = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param  # the request field at fault, as the client spells it

    @property
    def is_clients(self) -> bool:
        """Tells whether the client can mend it: a status of 4xx."""
        return self.status < _FIRST_SERVER_STATUS


class InvalidRequest(OuzelError):
    """The request cannot be honoured as it stands; names the field, the limit and the value."""

    status = 400
    type = "invalid_request_error"

    def __init__(
        self, complaint: str, *, field: str | None = None, param: str | None = None
    ) -> None:
        """`complaint` goes on from the name of `field`, the one at fault; with `param` it is the whole message."""
        super().__init__(complaint, param=field or param)
        self._field = field

    def __str__(self) -> str:
        complaint: str = self.args[0]
        if self._field is None:
            return complaint
        return (
            f"{self._field}{complaint}"
            if complaint.startswith(":")
            else f"{self._field} {complaint}"
        )

    def at(self, field: str, *, param: str | None = None) -> Self:
        """Returns the same complaint about another field; `param` where the client knows only a part of its path."""
        error = type(self).__new__(type(self), *self.args)
        error.__dict__.update(self.__dict__)
        error.param = param or field
        if self._field is not None:
            error._field = field
        return error


class ContextLengthExceeded(InvalidRequest):
    """Prompt and completion do not fit into `max_model_len`."""

    code = "context_length_exceeded"


class Unauthenticated(InvalidRequest):
    """The request has no API key, or none of the server's; the message never holds it."""

    status = 401
    code = "invalid_api_key"


class ForeignOrigin(InvalidRequest):
    """The browser's page is of an origin that may not use this server."""

    status = 403
    code = "origin_not_allowed"


class ModelNotFound(InvalidRequest):
    """The `model` value is none of the served model names."""

    status = 404
    code = "model_not_found"


class ResponseNotFound(InvalidRequest):
    """No such response is stored for this API key."""

    status = 404
    what: ClassVar[str] = "Response"

    def __init__(self, response_id: str, *, param: str | None = None) -> None:
        super().__init__(f"{self.what} with id '{_shortened(response_id)}' not found.", param=param)
        self.response_id = response_id


class PreviousResponseNotFound(ResponseNotFound):
    """The response that a new one is to continue is not stored for this API key."""

    code = "previous_response_not_found"
    what = "Previous response"


class ConversationNotFound(InvalidRequest):
    """No such conversation is stored for this API key."""

    status = 404

    def __init__(self, conversation_id: str, *, param: str | None = "conversation_id") -> None:
        super().__init__(
            f"Conversation with id '{_shortened(conversation_id)}' not found.", param=param
        )
        self.conversation_id = conversation_id


class ItemNotFound(InvalidRequest):
    """The list that is asked for has no such item."""

    status = 404

    def __init__(self, item_id: str, *, param: str | None = None) -> None:
        super().__init__(f"Item with id '{_shortened(item_id)}' not found.", param=param)
        self.item_id = item_id


class HistoryLost(InvalidRequest):
    """The response is there, but not all of what it continues."""

    code = "previous_response_not_found"

    def __init__(
        self, response_id: str, lost_id: str, *, param: str | None = "previous_response_id"
    ) -> None:
        super().__init__(
            f"Response with id '{response_id}' cannot be continued: it continues '{lost_id}', which was deleted.",
            param=param,
        )
        self.response_id = response_id
        self.lost_id = lost_id


class ConversationLocked(InvalidRequest):
    """A response that goes on holds the conversation."""

    code = "conversation_locked"

    def __init__(self, conversation_id: str, *, param: str | None = "conversation") -> None:
        super().__init__(
            f"Another response is being made in the conversation '{conversation_id}'. Please retry in a few seconds.",
            param=param,
        )
        self.conversation_id = conversation_id


class InvalidStreamId(InvalidRequest):
    """A WebSocket's lane cannot have this name."""

    code = "invalid_stream_id"


class StreamLimitReached(InvalidRequest):
    """A WebSocket has had as many lanes as it may."""

    code = "websocket_stream_limit_reached"


class SocketTooOld(InvalidRequest):
    """This WebSocket takes no more requests, another one would."""

    code = "websocket_connection_limit_reached"


class PayloadTooLarge(InvalidRequest):
    """The body is longer than `max_body_bytes`."""

    status = 413
    code = "payload_too_large"


class UnsupportedEncoding(InvalidRequest):
    """The body is compressed (RFC 9110, section 8.4)."""

    status = 415
    code = "unsupported_encoding"


class BodyTimeout(InvalidRequest):
    """The body did not arrive within `body_timeout_s`."""

    status = 408
    code = "request_timeout"


class HeadTimeout(InvalidRequest):
    """The request line and the headers did not arrive within `header_timeout_s`."""

    status = 408
    code = "request_timeout"


class HeadTooLarge(InvalidRequest):
    """The request line and the headers are too long, or too many."""

    status = 431
    code = "request_header_fields_too_large"


class ForeignHost(InvalidRequest):
    """The request is for a host that this server does not answer for."""

    status = 403
    code = "host_not_allowed"


class TryLater(OuzelError):
    """Nothing is wrong with the request; it may succeed after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Overloaded(TryLater):
    """The request is refused before any work is done: too much is asked of the server at once."""

    status = 429
    type = "rate_limit_error"
    code = "overloaded"


class TooManyConnections(TryLater):
    """As many connections as may be have requests that are being answered."""

    status = 503
    type = "service_unavailable_error"
    code = "too_many_connections"


class EngineUnavailable(TryLater):
    """The engine cannot take requests now, but will."""

    status = 503
    type = "service_unavailable_error"
    code = "engine_unavailable"


class StoreUnavailable(TryLater):
    """The database cannot do now what was asked."""

    status = 503
    type = "service_unavailable_error"
    code = "store_unavailable"


class EngineFailed(OuzelError):
    """An accepted request was lost to a fault of the engine."""

    code = "engine_failed"


class ModelLoadError(OuzelError):
    """The model directory cannot be served; the message says what is wrong and what would help."""


class StoreOpenError(OuzelError):
    """The store cannot be used as it is configured; the message says why."""
