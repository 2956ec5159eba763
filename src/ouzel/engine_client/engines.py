"""Declares the interface of one engine and of a pool of engines."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ouzel.engine_client.client import EngineClient, GivenTo
from ouzel.engine_client.engine_state import SHUTTING_DOWN, STOPPED, EngineState
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput


class Adapters(Protocol):
    """Loads and unloads adapters in all engines."""

    async def load(self, name: str, path: str) -> None:
        """Loads an adapter, so that requests may use the name.

        Raises ModelLoadError, EngineUnavailable.
        """
        ...

    async def unload(self, name: str) -> None:
        """Unloads an adapter; returns when it is gone, after the last request that uses it."""
        ...


class Engines(Protocol):
    """Takes requests for one or several engines. All calls are made in one event loop."""

    @property
    def state(self) -> EngineState: ...

    @property
    def reason(self) -> str:
        """Explains the state, for people."""
        ...

    @property
    def info(self) -> EngineInfo:
        """Returns the facts common to all engines.

        Raises EngineUnavailable before the first is ready.
        """
        ...

    @property
    def members(self) -> Sequence[EngineClient]:
        """Returns the engines, each with a fixed place."""
        ...

    @property
    def adapters(self) -> "Adapters": ...

    @property
    def num_unfinished(self) -> int:
        """Counts the admitted requests."""
        ...

    @property
    def max_admitted(self) -> int:
        """Returns the limit of admitted requests."""
        ...

    @property
    def num_free(self) -> int:
        """Returns how many requests like the present one `admit` would accept now."""
        ...

    async def start(self) -> EngineInfo:
        """Waits until all engines are ready. Raises ModelLoadError if one fails."""
        ...

    def leave(self) -> None:
        """Enters LEAVING, which asks for no more requests.

        They are still accepted until `drain`.
        """
        ...

    async def drain(self, timeout_s: float, *, reason: str = SHUTTING_DOWN) -> None:
        """Admits no more requests and waits for the admitted ones.

        Aborts the rest after the timeout.
        """
        ...

    async def close(self, *, reason: str = STOPPED) -> None:
        """Stops the engines; open streams end with `error`."""
        ...

    def admit(self, num_requests: int = 1) -> AbstractContextManager[None]:
        """Holds places for requests in a block. Raises Overloaded or EngineUnavailable."""
        ...

    async def wait_until_unused(self) -> None:
        """Waits until no request holds a place."""
        ...

    def submit(
        self,
        request: EngineRequest,
        given_to: GivenTo = None,
        accepted: asyncio.Event | None = None,
    ) -> AsyncGenerator[list[StepOutput], None]:
        """Yields all new outputs since the last read, one merged output per choice, up to the final
        outputs.

        Before the first output, `given_to` is called with the number of the chosen member.
        `accepted` is set when the engine can no longer refuse the request. Raises
        EngineUnavailable. Leaving the stream early aborts the request.
        """
        ...

    def abort(self, request_id: str, index: int | None = None) -> None:
        """Ends one choice, or all; their final outputs follow."""
        ...
