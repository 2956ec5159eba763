"""`ApiClient` is what asks an OpenAI-compatible API: over HTTP, or of an application in this process."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import msgspec

from ouzel.errors import OuzelError

MAX_ANSWER_BYTES = 256 * 2**20  # of a whole answer, or of one event of a stream
_STATUSES = frozenset(HTTPStatus)
UNREADABLE = (
    msgspec.DecodeError,
    UnicodeDecodeError,
    RecursionError,
)  # what decoders raise of others' JSON


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class ApiFailure(OuzelError):
    """The API refused the request, or was out of reach; the message is what it said, for people."""

    def __init__(self, message: str, *, http_status: int = 0) -> None:
        super().__init__(message)
        self.http_status = http_status  # 0: there was no answer


class ApiClient(Protocol):
    """Paths begin at the API's root: `/v1/models`. Bodies are JSON."""

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Returns the whole answer, whatever its status. Raises ApiFailure where there is none."""
        ...

    def events(self, path: str, body: bytes) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Posts, and iterates over the data of the events of the answer, without the last, which is `[DONE]`.

        Leaving the context ends the request. Raises ApiFailure for any status but 200, and where the answer breaks off.
        """
        ...

    async def close(self) -> None: ...


def failure_of(answer: Answer) -> ApiFailure:
    """Reads what is said of a refusal, in the words of OpenAI or of those who say it otherwise."""
    try:
        content = msgspec.json.decode(answer.body)
    except UNREADABLE:
        content = None
    error = content.get("error", content) if isinstance(content, dict) else content
    message = error.get("message", error.get("detail")) if isinstance(error, dict) else error
    text = (
        message
        if isinstance(message, str) and message
        else answer.body[:500].decode(errors="replace")
    )
    return ApiFailure(
        f"{answer.status}: {text.strip() or _phrase(answer.status)}", http_status=answer.status
    )


def _phrase(status: int) -> str:
    """Returns what a status says by itself; those that proxies have made up say nothing."""
    return HTTPStatus(status).phrase if status in _STATUSES else "no reason was given"
