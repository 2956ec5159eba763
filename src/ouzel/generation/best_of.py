"""Chooses the best of more samples than the request shows.

All choices run to their end, and their events are held back. Then the `n` choices whose tokens have
the highest mean log probability under the model's own distribution become the choices 0 to n-1, the
best first; the others are dropped.
"""

from collections.abc import Sequence

import msgspec

from ouzel.generation.records import Event, Finished, GenerationRequest, Output, PromptScored
from ouzel.types.step_output import PositionLogprobs


class BestOf:
    """Holds back the events of one request's choices until the best are known."""

    def __init__(self, request: GenerationRequest) -> None:
        self._n = request.n
        self._shows_logprobs = request.params.num_logprobs is not None
        self._events: list[list[Event]] = [[] for _ in range(request.best_of)]
        self._logprob_sums = [0.0] * request.best_of
        self._nums_tokens = [0] * request.best_of
        self._num_unfinished = request.best_of

    def note(self, index: int, positions: Sequence[PositionLogprobs]) -> None:
        """Adds tokens to the choice's score, with the token that ends it."""
        self._logprob_sums[index] += sum(position.sampled.logprob for position in positions)
        self._nums_tokens[index] += len(positions)

    def hold(self, events: Sequence[Event]) -> list[Event]:
        """Returns the events to send now: the prompt's logprobs, and all events of the winners at
        the end.
        """
        due: list[Event] = []
        for event in events:
            match event:
                case PromptScored():
                    due.append(event)
                case Output(index):
                    shown = (
                        event
                        if self._shows_logprobs
                        else msgspec.structs.replace(event, logprobs=[])
                    )
                    self._events[index].append(shown)
                case Finished(index):
                    end = (
                        event
                        if self._shows_logprobs
                        else msgspec.structs.replace(event, hidden_logprobs=())
                    )
                    self._events[index].append(end)
                    self._num_unfinished -= 1
                    due += self._winners() if self._num_unfinished == 0 else []
        return due

    def _winners(self) -> list[Event]:
        ranking = sorted(range(len(self._events)), key=lambda index: -self._mean_logprob(index))
        return [
            msgspec.structs.replace(event, index=rank)
            for rank, index in enumerate(ranking[: self._n])
            for event in self._events[index]
        ]

    def _mean_logprob(self, index: int) -> float:
        return self._logprob_sums[index] / max(self._nums_tokens[index], 1)
