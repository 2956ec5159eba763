"""What requests are given to looks the same to those who have some, be it one engine or a pool of several."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from ouzel.engine_client.engine_state import SHUTTING_DOWN, STOPPED, EngineState
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput

if TYPE_CHECKING:
    from ouzel.engine_client.client import EngineClient


GivenTo = Callable[[int], None] | None


class Adapters(Protocol):
    async def load(self, name: str, path: str) -> None:
        """Lets requests use an adapter by this name. Raises ModelLoadError and EngineUnavailable."""
        ...

    async def unload(self, name: str) -> None:
        """Returns when it is gone; requests that use it come to their ends first."""
        ...


class Engines(Protocol):
    """Everything about it happens in the event loop that it was started in."""

    @property
    def state(self) -> EngineState: ...

    @property
    def reason(self) -> str:
        """Says of the state to people why it is."""
        ...

    @property
    def info(self) -> EngineInfo:
        """Says what every engine takes. Raises EngineUnavailable before the first one is ready."""
        ...

    @property
    def members(self) -> Sequence["EngineClient"]:
        """Returns the engines, each by itself; they keep their places."""
        ...

    @property
    def adapters(self) -> "Adapters": ...

    @property
    def num_unfinished(self) -> int:
        """Counts the requests between `admit` and the end of their block."""
        ...

    @property
    def max_admitted(self) -> int:
        """Returns how many requests may run or wait at a time."""
        ...

    @property
    def num_free(self) -> int:
        """Returns how many requests `admit` would take now."""
        ...

    async def start(self) -> EngineInfo:
        """Waits until all are ready. Raises ModelLoadError when one cannot be."""
        ...

    def leave(self) -> None:
        """Asks to be sent no more; what comes is taken, until `drain`."""
        ...

    async def drain(self, timeout_s: float, *, reason: str = SHUTTING_DOWN) -> None:
        """Admits nothing more and waits for what was admitted; aborts what is left after the timeout."""
        ...

    async def close(self, *, reason: str = STOPPED) -> None:
        """Stops the engines; streams that are still open end with `error`."""
        ...

    def admit(self, num_requests: int = 1) -> AbstractContextManager[None]:
        """Holds their places while the block runs. Raises Overloaded or EngineUnavailable when there are too few."""
        ...

    def submit(
        self,
        request: EngineRequest,
        given_to: GivenTo = None,
        accepted: asyncio.Event | None = None,
    ) -> AsyncGenerator[list[StepOutput], None]:
        """Gives all that is new since the last read, one merged output per choice; ends after the last final output.

        Before that `given_to` hears which of several `members` has it, and `accepted` is set once the engine has the
        request and cannot refuse it any more. Raises EngineUnavailable. Leaving the stream early aborts the request.
        """
        ...

    def abort(self, request_id: str, index: int | None = None) -> None:
        """Ends one choice, or all; their final outputs follow."""
        ...
