"""A dialect reads the bodies of an endpoint and answers: it stands between generation and the words on the wire."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ouzel.api.http.framing import Framing
from ouzel.generation import Event, GenerationRequest, Usage
from ouzel.wire.decode import JsonObject


class Answer(Protocol):
    """Writes events in the words of one endpoint. A unary answer is the same events, folded."""

    is_stream: bool
    framing: Framing  # of the stream

    def chunks(self, events: Sequence[Event], usage: Usage) -> Sequence[object]:
        """Returns the objects of one wake-up."""
        ...

    def last_chunks(self, usage: Usage) -> Sequence[object]:
        """Returns what follows the last event."""
        ...

    def whole(self, events: Sequence[Event], usage: Usage) -> object:
        """Returns the unary answer: all events of the request, folded."""
        ...


class Dialect(Protocol):
    """Reads the bodies of one endpoint and begins their answers. It is called from many threads."""

    def parse(self, body: bytes) -> JsonObject:
        """Returns the fields as they came."""
        ...

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        """Checks and renders; several prompts become as many requests, all with the same n.

        Without any request the answer is `whole` of no events.
        """
        ...


DialectOfKey = Callable[
    [str | None], Dialect
]  # takes the id of the request's API key; None if the server has no keys
