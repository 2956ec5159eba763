"""How an endpoint that generates reads a body and answers: the seam between generation and the words on the wire."""

from collections.abc import Sequence
from typing import Protocol

from ouzel.api.http.framing import Framing
from ouzel.generation import Event, GenerationRequest, Usage


class Answer(Protocol):
    """Events in the words of one endpoint. A unary answer is the same events, folded."""

    is_stream: bool
    framing: Framing  # of the stream

    def chunks(self, events: Sequence[Event], usage: Usage) -> Sequence[object]:
        """The objects of one wake-up."""
        ...

    def last_chunks(self, usage: Usage) -> Sequence[object]:
        """What follows the last event."""
        ...

    def whole(self, events: Sequence[Event], usage: Usage) -> object:
        """The unary answer: all events of the request, folded."""
        ...


class Dialect(Protocol):
    """One endpoint's reading of a body, and its way to answer. Called from many threads."""

    def prepare(self, body: bytes, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        """Decodes, checks and renders; several prompts become as many requests, all with the same n."""
        ...
