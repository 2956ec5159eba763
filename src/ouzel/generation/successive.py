"""Adds up the generations of one response, whose turns are separated by calls of tools."""

import asyncio
from collections.abc import Callable

from ouzel.generation.generation import Generation
from ouzel.generation.records import GenerationRequest, Usage
from ouzel.generation.several import SeveralGenerations
from ouzel.types.step_output import RequestTiming


class SuccessiveGenerations:
    """Has the facts of a `Generation` for logs and usage, over all its turns."""

    def __init__(
        self, first: Generation, *, runs_first: bool, earlier_usage: Usage | None = None
    ) -> None:
        """Without `runs_first`, calls come before the first turn, and `first` is only a draft.

        `earlier_usage` is the usage of turns that another server has run.
        """
        self._first = first
        self._earlier_usages = [] if earlier_usage is None else [earlier_usage]
        self.turns = [first] if runs_first else []
        self.model_name = first.model_name
        self.accepted: asyncio.Event = first.accepted
        self.can_tell_of_dropped: Callable[[], bool] = lambda: False
        first.can_tell_of_dropped = self._can_tell

    def _can_tell(self) -> bool:
        return self.can_tell_of_dropped()

    def add(self, turn: Generation) -> None:
        self.turns.append(turn)

    @property
    def request(self) -> GenerationRequest:
        """Returns the request of the first turn, or of the draft."""
        return self._first.request

    @property
    def dropped_formats(self) -> tuple[str, ...]:
        return self._first.dropped_formats

    @property
    def timing(self) -> RequestTiming | None:
        """Returns the times of the first turn."""
        return self._first.timing

    @property
    def ttft_s(self) -> float | None:
        return self.turns[0].ttft_s if self.turns else None

    @property
    def finish_reasons(self) -> list[str]:
        return [reason for turn in self.turns for reason in turn.finish_reasons]

    def usage(self) -> Usage:
        """Returns the sums over all turns; each turn reads its whole prompt."""
        usages = [*self._earlier_usages, *(turn.usage() for turn in self.turns)]
        return Usage(
            prompt_tokens=sum(usage.prompt_tokens for usage in usages),
            cached_tokens=sum(usage.cached_tokens for usage in usages),
            completion_tokens=sum(usage.completion_tokens for usage in usages),
            reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
            accepted_prediction_tokens=sum(usage.accepted_prediction_tokens for usage in usages),
            rejected_prediction_tokens=sum(usage.rejected_prediction_tokens for usage in usages),
            image_tokens=sum(usage.image_tokens for usage in usages),
            audio_tokens=sum(usage.audio_tokens for usage in usages),
        )


AnyGeneration = Generation | SeveralGenerations | SuccessiveGenerations
