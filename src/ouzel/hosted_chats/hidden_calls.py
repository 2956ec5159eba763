"""Hides the calls that this server runs, for APIs whose clients would try to run them."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

import msgspec

from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Output,
    SuccessiveGenerations,
    ToolCallDelta,
    Usage,
)
from ouzel.hosted_chats.events import CallEnded, Paused, TurnEvent
from ouzel.hosted_chats.tool_turns import ToolTurns

_BETWEEN_TEXTS = "\n\n"


class HiddenCalls:
    """Has the interface of `ToolTurns`, with plain events.

    The texts of two turns are separate paragraphs. The client's calls are numbered from 0.
    """

    def __init__(self, turns: ToolTurns) -> None:
        self._turns = turns
        self._hidden: set[int] = set()  # numbers of hidden calls of the turn
        self._num_calls = 0  # number of calls that were shown
        self._shown: dict[int, int] = {}  # maps the numbers of the turn's calls to shown numbers
        self._has_text = False  # an earlier turn has a text, or this one
        self._is_new_turn = False

    @property
    def generations(self) -> SuccessiveGenerations:
        return self._turns.generations

    def usage(self) -> Usage:
        return self._turns.usage()

    async def events(self) -> AsyncGenerator[list[Event], None]:
        async with aclosing(self._turns.events()) as steps:
            async for events in steps:
                if shown := list(self._show(events)):
                    yield shown

    def _show(self, events: Sequence[TurnEvent]) -> Iterator[Event]:
        for event in events:
            match event:
                case CallEnded():
                    self._hidden.clear()
                    self._shown.clear()
                    self._is_new_turn = True
                case Paused():
                    pass
                case Output(deltas=deltas):
                    shown = [each for delta in deltas for each in self._show_delta(delta)]
                    yield msgspec.structs.replace(event, deltas=shown)
                case _:
                    yield event

    def _show_delta(self, delta: Delta) -> Iterator[Delta]:
        match delta:
            case ContentDelta(text) if text:
                if self._is_new_turn and self._has_text and text.strip():
                    yield ContentDelta(_BETWEEN_TEXTS)
                self._is_new_turn = self._is_new_turn and not text.strip()
                self._has_text = self._has_text or bool(text.strip())
                yield delta
            case ToolCallDelta(index=index, name=name):
                if name is not None and self._turns.is_hosted(name):
                    self._hidden.add(index)
                elif index not in self._hidden:
                    if index not in self._shown:
                        self._shown[index] = self._num_calls
                        self._num_calls += 1
                    yield msgspec.structs.replace(delta, index=self._shown[index])
            case _:
                yield delta
