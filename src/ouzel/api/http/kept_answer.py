"""Adds to an answer the work that follows its generation, such as storing it."""

from collections.abc import Awaitable, Callable, Sequence

from ouzel.api.http.dialect import Answer
from ouzel.api.http.exchange import Exchange
from ouzel.generation import Event, Usage

Keep = Callable[[Sequence[Event], Usage, Exchange], Awaitable[None]]


class KeptAnswer:
    """Writes the same objects as another answer, and remembers the events.

    The endpoint awaits `keep` once after the last event. The client gets the end of its answer
    after that. Nothing is kept of a generation that fails, or whose client disconnects.
    """

    def __init__(self, answer: Answer, keep: Keep) -> None:
        """`keep` takes all events, the usage and the exchange. It must not raise."""
        self.is_stream = answer.is_stream
        self.framing = answer.framing
        self._answer = answer
        self._keep = keep
        self._events: list[Event] = []

    def show_as(self, wrap: Callable[[Answer], Answer]) -> "KeptAnswer":
        """Returns an answer that keeps the same, and writes the objects of the wrapped answer."""
        return KeptAnswer(wrap(self._answer), self._keep)

    def chunks(self, events: Sequence[Event], usage: Usage) -> Sequence[object]:
        self._events += events
        return self._answer.chunks(events, usage)

    def last_chunks(self, usage: Usage) -> Sequence[object]:
        return self._answer.last_chunks(usage)

    def whole(self, events: Sequence[Event], usage: Usage) -> object:
        self._events += events
        return self._answer.whole(events, usage)

    async def keep(self, usage: Usage, exchange: Exchange) -> None:
        await self._keep(self._events, usage, exchange)
