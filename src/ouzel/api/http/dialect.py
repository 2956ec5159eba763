"""Declares dialects: they read the bodies of an endpoint and write its answers.

A dialect stands between generation and the words on the wire.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeVar

from ouzel.api.http.framing import Framing
from ouzel.generation import Event, GenerationRequest, Usage
from ouzel.wire.decode import JsonObject

AnyEvent_contra = TypeVar("AnyEvent_contra", contravariant=True)


class AnswerTo(Protocol[AnyEvent_contra]):
    """Writes the events of a generation in the words of one endpoint."""

    is_stream: bool
    framing: Framing  # framing of the stream

    def chunks(self, events: Sequence[AnyEvent_contra], usage: Usage) -> Sequence[object]:
        """Returns the chunks for the events of one wake-up."""
        ...

    def last_chunks(self, usage: Usage) -> Sequence[object]:
        """Returns the chunks after the last event."""
        ...

    def whole(self, events: Sequence[AnyEvent_contra], usage: Usage) -> object:
        """Returns the unary answer for all events of the request."""
        ...


Answer: TypeAlias = AnswerTo[Event]
Prepared: TypeAlias = tuple[list[GenerationRequest], Answer]


class Dialect(Protocol):
    """Reads the bodies of one endpoint and begins their answers. Many threads call it."""

    def parse(self, body: bytes) -> JsonObject:
        """Returns the fields of the body, unchanged."""
        ...

    def prepare(self, fields: JsonObject, arrival_s: float) -> Prepared:
        """Checks the fields, renders the prompts, and begins the answer.

        Each prompt becomes a request; all have the same `n`. Without prompts, the answer is the
        result of `Answer.whole` for no events.
        """
        ...
