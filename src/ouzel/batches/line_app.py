"""Declares the application that answers the lines of batches, and its files."""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec


class LineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request of a batch."""

    status: int
    request_id: str
    body: bytes
    retry_after_s: float | None = None  # only if the request may be sent again


class LineApp(Protocol):
    """Answers requests in the background, for the key that owns their batch."""

    async def ask(self, path: str, body: bytes, *, key_id: str | None) -> LineAnswer:
        """Returns the answer, with any status. Cancelling the call aborts the request."""
        ...

    def find_model(self, name: str, endpoint: str) -> str:
        """Returns the first name of the model with this name.

        Raises ModelNotFound, and InvalidRequest if the endpoint is not for this model.
        """
        ...

    def num_places(self, model: str) -> int:
        """Returns how many lines may run at once on a model; 0 if it takes none now."""
        ...


class InputFile(msgspec.Struct, frozen=True):
    """The facts about a file that a batch names."""

    purpose: str
    num_bytes: int


class BatchFiles(Protocol):
    """Reads the input files of batches and writes their results."""

    async def find(self, file_id: str, key_id: str | None) -> InputFile | None:
        """Returns the facts about a file of the key; None if it does not exist."""
        ...

    def read(self, file_id: str, key_id: str | None) -> AsyncIterator[bytes]:
        """Yields the content in pieces. Raises an OuzelError if the file was deleted."""
        ...

    async def write(
        self,
        file_id: str,
        key_id: str | None,
        *,
        filename: str,
        pieces: AsyncIterator[bytes],
    ) -> None:
        """Writes a result file, which becomes visible when its batch is closed."""
        ...

    async def drop(self, file_id: str) -> None:
        """Deletes a result file that is not visible."""
        ...
