"""Defines the base of all items that stand for calls of tools which this server runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.responses.event_base import Place, ResponseEvent
from ouzel.responses.hosted.citations import Source


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """A call as the model wrote it, and the text that the model read as its result."""

    name: str  # the client's name of the function
    namespace: str | None
    arguments: str  # JSON
    output: str


class HostedItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """An item of a tool that this server runs.

    Besides OpenAI's fields it has the text that the model read. A later request, or another
    server, can therefore go on from the item alone. The fields are absent where there is no text.
    """

    id_prefix: ClassVar[str]  # the beginning of the ids of such items
    kind: ClassVar[str]  # the type of the tool, in metrics and traces
    keeps_id: ClassVar[bool] = False  # a stored copy has the same id: other items name it

    id: str
    output: str | UnsetType | None = UNSET  # the text that the model read
    sources: list[Source] | UnsetType = UNSET  # the sources in this text, for citations

    @property
    def is_running(self) -> bool:
        """Tells whether the call has not ended yet."""
        return False

    @property
    def is_failed(self) -> bool:
        return False

    @property
    def is_silent(self) -> bool:
        """Tells whether the model never reads the item itself."""
        return False

    @property
    def waits_for_client(self) -> bool:
        """Tells whether the response must end, because the client has to answer this item."""
        return False

    def called_name(self) -> tuple[str, str | None]:
        """Returns the name and the namespace of the function that the model has called."""
        return "", None

    def exchange(self) -> ToolExchange | None:
        """Returns the call and its result for the prompt; None if the model does not see it."""
        return None

    def fail(self, reason: str) -> Self:
        """Returns the ended item of a call that failed; the model reads the reason.

        Only running items can fail.
        """
        raise NotImplementedError

    def opening_events(self, place: Place) -> Iterator[ResponseEvent]:
        """Yields the events between `response.output_item.added` and the run of the call."""
        yield from ()

    def closing_events(self, place: Place) -> Iterator[ResponseEvent]:
        """Yields the events between the end of the call and `response.output_item.done`."""
        yield from ()
