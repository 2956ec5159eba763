"""Defines the tree of exceptions. Each class has an HTTP status and an OpenAI `type` and `code`.

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
│   ├── HistoryLost           400  an earlier response or conversation was deleted
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
├── EngineFailed              500  this request was lost to a fault of the server
├── ModelLoadError            –    at start-up: the model directory cannot be served
└── StoreOpenError            –    at start-up: the store cannot be used
"""

from asyncio import CancelledError
from typing import ClassVar, Self

# the only text that a client gets about a bug of ours
UNEXPECTED = "the server failed on this request; its log says why"
# These exceptions stop the code that runs. Every other BaseException is a fault: native libraries
# panic with classes that are not derived from Exception.
STOPS = (CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_MAX_SHOWN = 100
_FIRST_SERVER_STATUS = 500


def _shortened(client_id: str) -> str:
    """Shortens an id that a client sent, which may be any text."""
    return client_id if len(client_id) <= _MAX_SHOWN else f"{client_id[:_MAX_SHOWN]}…"


class OuzelError(Exception):
    """The base of all other classes; `str(error)` is the message for users."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str | None] = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param  # the request field at fault, as the client spells it

    @property
    def is_clients(self) -> bool:
        """Tells whether the client can correct it: a status of 4xx."""
        return self.status < _FIRST_SERVER_STATUS


class InvalidRequest(OuzelError):
    """The request cannot be honoured; the message names the field, the limit and the value."""

    status = 400
    type = "invalid_request_error"

    def __init__(
        self, complaint: str, *, field: str | None = None, param: str | None = None
    ) -> None:
        """`complaint` continues the name of `field`; with `param` it is the whole message."""
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
        """Returns the same complaint about another field.

        `param` is given if the client knows only a part of the field's path.
        """
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
    """The request has no valid API key. The message never contains the key."""

    status = 401
    code = "invalid_api_key"


class ForeignOrigin(InvalidRequest):
    """The browser's page has an origin that may not use this server."""

    status = 403
    code = "origin_not_allowed"


class ModelNotFound(InvalidRequest):
    """The `model` value is not a served model name."""

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
    """The previous response of a new one is not stored for this API key."""

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
    """The requested list has no such item."""

    status = 404

    def __init__(self, item_id: str, *, param: str | None = None) -> None:
        super().__init__(f"Item with id '{_shortened(item_id)}' not found.", param=param)
        self.item_id = item_id


class HistoryLost(InvalidRequest):
    """The response is stored, but a part of its history was deleted."""

    code = "previous_response_not_found"

    def __init__(
        self, response_id: str, lost_id: str, *, param: str | None = "previous_response_id"
    ) -> None:
        super().__init__(
            f"Response with id '{response_id}' cannot be continued: it continues '{lost_id}', "
            f"which was deleted.",
            param=param,
        )
        self.response_id = response_id
        self.lost_id = lost_id


class ConversationLocked(InvalidRequest):
    """Another response in progress holds the conversation."""

    code = "conversation_locked"

    def __init__(self, conversation_id: str, *, param: str | None = "conversation") -> None:
        super().__init__(
            f"Another response is being made in the conversation '{conversation_id}'. "
            f"Please retry in a few seconds.",
            param=param,
        )
        self.conversation_id = conversation_id


class InvalidStreamId(InvalidRequest):
    """The name of a WebSocket's stream is not allowed."""

    code = "invalid_stream_id"


class StreamLimitReached(InvalidRequest):
    """A WebSocket has reached its limit of streams."""

    code = "websocket_stream_limit_reached"


class SocketTooOld(InvalidRequest):
    """This WebSocket accepts no more requests; a new one would."""

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
    """The request names a host that is not this server."""

    status = 403
    code = "host_not_allowed"


class TryLater(OuzelError):
    """The request is correct and may succeed after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Overloaded(TryLater):
    """The request is refused before any work: the server has too much to do."""

    status = 429
    type = "rate_limit_error"
    code = "overloaded"


class TooManyConnections(TryLater):
    """The maximum number of connections with open requests is reached."""

    status = 503
    type = "service_unavailable_error"
    code = "too_many_connections"


class EngineUnavailable(TryLater):
    """The engine cannot take requests now."""

    status = 503
    type = "service_unavailable_error"
    code = "engine_unavailable"


class StoreUnavailable(TryLater):
    """The database cannot serve the request now."""

    status = 503
    type = "service_unavailable_error"
    code = "store_unavailable"


class EngineFailed(OuzelError):
    """An accepted request was lost to a fault of the engine."""

    code = "engine_failed"


class ModelLoadError(OuzelError):
    """The model directory cannot be served; the message says why and names a remedy."""


class StoreOpenError(OuzelError):
    """The configured store cannot be used; the message says why."""
