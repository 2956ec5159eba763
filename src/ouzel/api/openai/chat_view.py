"""Shows reasoning and echo as the request demands: hidden, in the content, or after an echo."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Output,
    PromptScored,
    ReasoningDelta,
    ServedModel,
)
from ouzel.wire.shown_text import ReasoningPlace

# used if the model's own marks are not known
_MARKS = ("<think>", "</think>")


class ChatView:
    """Turns the events of a request into the events that its answer shows.

    It needs all events in order.
    """

    def __init__(self, place: ReasoningPlace, echo: str, model: ServedModel) -> None:
        self._place = place
        self._echo = echo
        family = model.output_format.reasoning
        marks = None if family is None else family.reasoning
        self._start, self._end = _MARKS if marks is None else (marks.start, marks.end)
        self._echoed: set[int] = set()  # indexes of choices
        # choices with unfinished reasoning in the content
        self._thinking: set[int] = set()

    def show(self, events: Sequence[Event]) -> Sequence[Event]:
        is_plain = self._place == "apart" and not self._echo
        return events if is_plain else [shown for event in events for shown in self._show(event)]

    def _show(self, event: Event) -> Iterator[Event]:
        if not isinstance(event, PromptScored) and self._echo and event.index not in self._echoed:
            self._echoed.add(event.index)
            yield Output(event.index, [ContentDelta(self._echo)], [], [])
        if isinstance(event, Output) and self._place != "apart":
            event = replace(event, deltas=list(self._place_reasoning(event.index, event.deltas)))
        yield event

    def _place_reasoning(self, index: int, deltas: Sequence[Delta]) -> Iterator[Delta]:
        for delta in deltas:
            is_reasoning = isinstance(delta, ReasoningDelta)
            if self._place == "nowhere":
                if not is_reasoning:
                    yield delta
                continue
            if is_reasoning and index not in self._thinking:
                self._thinking.add(index)
                yield ContentDelta(f"{self._start}\n")
            elif not is_reasoning and index in self._thinking:
                self._thinking.remove(index)
                yield ContentDelta(f"\n{self._end}\n\n")
            yield ContentDelta(delta.text) if isinstance(delta, ReasoningDelta) else delta
