"""Defines the base exceptions, and the exceptions that several rooms raise.

Each class has an HTTP status and an OpenAI `type` and `code`. An exception of one room is defined
in that room, such as the exceptions of `store/errors.py`.

OuzelError
├── InvalidRequest            400  the client must change the request
│   ├── ContextLengthExceeded 400
│   └── ModelNotFound         404
├── TryLater                       try again after `retry_after_s`
│   ├── Overloaded            429
│   └── EngineUnavailable     503  the engine is starting, restarting or draining
├── EngineFailed              500  this request was lost to a fault of the server
└── ModelLoadError            –    at start-up: the model directory cannot be served
"""

from asyncio import CancelledError
from typing import ClassVar, Self

# the only text that a client gets about a bug of ours
UNEXPECTED = "the server failed on this request; its log says why"
# These exceptions stop the code that runs. Every other BaseException is a fault: native libraries
# panic with classes that are not derived from Exception.
STOPS = (CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_FIRST_SERVER_STATUS = 500


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


class ModelNotFound(InvalidRequest):
    """The `model` value is not a served model name."""

    status = 404
    code = "model_not_found"


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


class EngineUnavailable(TryLater):
    """The engine cannot take requests now."""

    status = 503
    type = "service_unavailable_error"
    code = "engine_unavailable"


class EngineFailed(OuzelError):
    """An accepted request was lost to a fault of the engine."""

    code = "engine_failed"


class ModelLoadError(OuzelError):
    """The model directory cannot be served; the message says why and names a remedy."""
