"""Defines `ApiClient`, the client of an OpenAI-compatible API, and its failures."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import msgspec

from ouzel.errors import OuzelError

MAX_ANSWER_BYTES = 256 * 2**20  # limit for a whole answer and for one event of a stream
JSON = "application/json"
_STATUSES = frozenset(HTTPStatus)
# The errors that decoders raise for invalid JSON.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class ApiFailure(OuzelError):
    """The API refused the request or did not answer; the message tells people the reason."""

    def __init__(self, message: str, *, http_status: int = 0) -> None:
        super().__init__(message)
        self.http_status = http_status  # 0: no answer


class ApiClient(Protocol):
    """Sends requests; paths begin at the root of the API: `/v1/models`."""

    async def ask(
        self, method: str, path: str, body: bytes = b"", *, content_type: str = JSON
    ) -> Answer:
        """Returns the whole answer, with any status. Raises ApiFailure if there is no answer."""
        ...

    def events(
        self, path: str, body: bytes, *, content_type: str = JSON
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Posts the body and iterates over the data of the events of the answer, without `[DONE]`.

        Leaving the context ends the request. Raises ApiFailure for a status other than 200, and
        for an answer that breaks off.
        """
        ...

    async def close(self) -> None: ...


def read_failure(answer: Answer) -> ApiFailure:
    """Reads the message of an error answer, in OpenAI's form or the forms of other servers."""
    try:
        content = msgspec.json.decode(answer.body)
    except UNREADABLE:
        content = None
    error = content.get("error", content) if isinstance(content, dict) else content
    message = error.get("message", error.get("detail")) if isinstance(error, dict) else error
    if isinstance(message, str) and message:
        text = message.strip()
    else:
        text = answer.body[:500].decode(errors="replace").strip()
    return ApiFailure(
        f"{answer.status}: {text or _phrase(answer.status)}", http_status=answer.status
    )


def _phrase(status: int) -> str:
    """Returns the standard phrase of a status, or "no reason was given" for another status."""
    return HTTPStatus(status).phrase if status in _STATUSES else "no reason was given"
