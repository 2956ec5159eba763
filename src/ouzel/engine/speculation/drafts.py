"""Runs a source of drafts with its costs and trials.

A fault disables the source; the model goes on.
"""

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ouzel.engine.base import ModelRunner, PredictingRunner
from ouzel.engine.sampling.draft_draws import DraftRequest, DraftTokens
from ouzel.engine.scheduling.image_encoder import ImageEncoder, NoImages
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.assistant import Assistant
from ouzel.engine.speculation.draft_model import DraftModel
from ouzel.engine.speculation.prediction import PredictionLayer
from ouzel.engine.speculation.rules.drafting import Drafting
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.engine.speculation.rules.trials import Trials
from ouzel.engine.speculation.step_measurement import MeasuredCosts
from ouzel.engine.state.sequence import Sequence
from ouzel.errors import STOPS

logger = logging.getLogger(__name__)


class DraftSource(Protocol):
    """Makes drafts: a smaller model, an assistant, an EAGLE-3 head, or a prediction layer of the
    model itself.
    """

    @property
    def runner(self) -> ModelRunner: ...

    def begin(self, sequence: Sequence) -> Drafting | None:
        """Returns the sequence's drafting state; None if no draft is possible now."""
        ...

    def catch_up(self, sequences: Iterable[Sequence], num_tokens: int) -> None:
        """Computes missing tokens of sequences that lack many, at most `num_tokens` in all."""
        ...

    def lags(self, sequence: Sequence) -> bool:
        """Tells whether a sequence lacks too many tokens to draft in this step."""
        ...

    def draft(self, requests: list[DraftRequest]) -> DraftTokens: ...

    def record(self, scheduled: Iterable[Scheduled]) -> None:
        """Reads a step that has run, before its tokens are known."""
        ...

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_accepted: int) -> None:
        """Records the result of a draft that followed `num_tokens` tokens."""
        ...

    def settle(self, scheduled: Iterable[Scheduled]) -> None:
        """Reads a step after its tokens are known."""
        ...

    def close(self) -> None: ...


def make_draft_source(
    runner: ModelRunner,
    draft: ModelRunner | None,
    images: ImageEncoder | NoImages | None,
    *,
    predicts: bool,
    assists: bool = False,
) -> DraftSource | None:
    if assists:
        assert isinstance(runner, PredictingRunner) and runner.prediction is not None
        return Assistant(runner, runner.prediction)
    if predicts:
        assert isinstance(runner, PredictingRunner) and runner.prediction is not None
        return PredictionLayer(runner, runner.prediction, images)
    return None if draft is None else DraftModel(draft, runner.info.vocab_size)


class Drafts:
    """Drafts tokens, measures the costs of drafts and disables a source that fails."""

    def __init__(self, source: DraftSource, costs: MeasuredCosts) -> None:
        self._source: DraftSource | None = source
        self._source_to_close = source
        self._measured = costs
        self._trials = Trials()

    @property
    def costs(self) -> StepCosts | None:
        return self._measured.known

    @property
    def awaits_costs(self) -> bool:
        return self._source is not None and self._measured.known is None

    def measure(self) -> bool:
        """Measures one step of the source; returns whether more measurements remain."""
        has_more = False
        with self._disabling_on_failure():
            has_more = self._source is not None and self._measured.advance()
        return has_more

    def begin(self, sequence: Sequence) -> Drafting | None:
        drafting = None
        with self._disabling_on_failure():
            drafting = None if self._source is None else self._source.begin(sequence)
        return drafting

    def is_trial(self, sequence: Sequence) -> bool:
        """Tells whether to draft a token only to learn whether it would be accepted.

        The draft does not pay for this sequence. The trial's time includes the sequence's missing
        tokens.
        """
        drafting, costs = sequence.drafting, self.costs
        if drafting is None or costs is None:
            return False
        trial_s = costs.change_s + costs.estimate_unsampled(
            drafting.num_missing_tokens(sequence.num_tokens)
        )
        return self._trials.is_due(trial_s, is_promising=drafting.was_accepted)

    def catch_up_s(self, sequence: Sequence) -> float:
        """Returns the seconds to compute a sequence's missing tokens, divided by the steps that
        profit.
        """
        drafting, costs = sequence.drafting, self.costs
        if drafting is None or costs is None:
            return 0.0
        num_left = sequence.params.max_tokens - sequence.num_output_tokens
        return drafting.catch_up_s(sequence.num_tokens, num_left, costs)

    def draft(self, requests: list[DraftRequest], max_tokens: int) -> DraftTokens:
        """Drafts tokens and returns them by sequence.

        Before the drafts, the source computes missing tokens, at most `max_tokens` in all. A
        sequence that still lacks too many tokens is not in the result. A fault disables the source.
        """
        drafted: DraftTokens = {}
        with self._disabling_on_failure():
            if self._source is not None:
                self._source.catch_up([request.sequence for request in requests], max_tokens)
                requests = [
                    request for request in requests if not self._source.lags(request.sequence)
                ]
                begin = time.perf_counter()
                drafted = self._source.draft(requests)
                self._note_costs(requests, drafted, time.perf_counter() - begin)
        return drafted

    def _note_costs(
        self, requests: list[DraftRequest], drafted: DraftTokens, seconds: float
    ) -> None:
        """Updates the costs from a draft with several tokens, the same number for all sequences.

        With several tokens, the time for missing tokens is a small part.
        """
        costs = self.costs
        numbers = {
            num
            for request in requests
            for num in (request.num_tokens, len(drafted[request.sequence]))
        }
        if costs is None or len(numbers) != 1 or numbers == {1}:
            return
        attention_s = costs.attention.estimate(1) * sum(
            request.sequence.num_tokens for request in requests
        )
        self._measured.note(len(requests), attention_s, seconds / requests[0].num_tokens)

    def record(self, scheduled: list[Scheduled], seconds: float) -> None:
        """Reads a step that has just run and took `seconds`."""
        self._trials.save(seconds)
        with self._disabling_on_failure():
            if self._source is not None:
                self._source.record(scheduled)

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_accepted: int) -> None:
        with self._disabling_on_failure():
            if self._source is not None:
                self._source.note(sequence, num_tokens, num_tried, num_accepted)

    def settle(self, scheduled: list[Scheduled]) -> None:
        with self._disabling_on_failure():
            if self._source is not None:
                self._source.settle(scheduled)

    def close(self) -> None:
        self._source_to_close.close()

    @contextmanager
    def _disabling_on_failure(self) -> Iterator[None]:
        """Disables the source if it fails; the model still computes every token."""
        try:
            yield
        except STOPS:
            raise
        except BaseException:
            logger.exception("the draft source failed and has been disabled")
            self._source = None
