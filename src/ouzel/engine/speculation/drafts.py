"""What guesses a sequence's tokens, and what is spent on it. A fault of it ends it, and nothing else."""

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ouzel.engine.base import ModelRunner, PredictingRunner
from ouzel.engine.sampling.draft_draws import Drafted, Want
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.draft_model import DraftModel
from ouzel.engine.speculation.prediction import PredictionLayer
from ouzel.engine.speculation.rules.drafting import Drafting
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.engine.speculation.rules.trials import Trials
from ouzel.engine.speculation.step_measurement import MeasuredCosts
from ouzel.engine.state.sequence import Sequence
from ouzel.errors import STOPS

logger = logging.getLogger(__name__)


class Guesser(Protocol):
    """A smaller model, or a layer behind the model's."""

    @property
    def runner(self) -> ModelRunner: ...

    def begin(self, sequence: Sequence) -> Drafting | None:
        """Returns what is known of a sequence's drafts; None: there are none for it now."""
        ...

    def catch_up(self, sequences: Iterable[Sequence], num_tokens: int) -> None:
        """Computes tokens of those that lack many, so many in all at most."""
        ...

    def lags(self, sequence: Sequence) -> bool:
        """Tells whether a sequence lacks so many tokens that it has to wait."""
        ...

    def draft(self, wants: list[Want]) -> Drafted: ...

    def record(self, scheduled: Iterable[Scheduled]) -> None:
        """Is called when a step has run, before its tokens are known."""
        ...

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_came: int) -> None:
        """Is called when it is known what came of a draft behind so many tokens."""
        ...

    def settle(self, scheduled: Iterable[Scheduled]) -> None:
        """Is called when a step is done."""
        ...

    def close(self) -> None: ...


def guesser_of(runner: ModelRunner, draft: ModelRunner | None, *, predicts: bool) -> Guesser | None:
    if predicts:
        assert isinstance(runner, PredictingRunner) and runner.prediction is not None
        return PredictionLayer(runner, runner.prediction)
    return None if draft is None else DraftModel(draft, runner.info.vocab_size)


class Drafts:
    """Guesses of a sequence's tokens, and what they cost."""

    def __init__(self, guesser: Guesser, costs: MeasuredCosts) -> None:
        self._guesser: Guesser | None = guesser
        self._closed_at_the_end = guesser
        self._measured = costs
        self._trials = Trials()

    @property
    def costs(self) -> StepCosts | None:
        return self._measured.known

    @property
    def awaits_costs(self) -> bool:
        return self._guesser is not None and self._measured.known is None

    def measure(self) -> bool:
        """Takes one of the steps that tell what the guesser's cost; returns whether there are more."""
        has_more = False
        with self._at_its_own_risk():
            has_more = self._guesser is not None and self._measured.advance()
        return has_more

    def begin(self, sequence: Sequence) -> Drafting | None:
        drafting = None
        with self._at_its_own_risk():
            drafting = None if self._guesser is None else self._guesser.begin(sequence)
        return drafting

    def is_trial(self, sequence: Sequence) -> bool:
        """Tells whether for a sequence whose draft does not pay one is made, to see whether it would have come true.

        It is charged for what lacks of the sequence's tokens.
        """
        drafting, costs = sequence.drafting, self.costs
        if drafting is None or costs is None:
            return False
        trial_s = costs.change_s + costs.of_unsampled(
            drafting.num_missing_tokens(sequence.num_tokens)
        )
        return self._trials.is_due(trial_s, is_promising=drafting.came_true)

    def catch_up_s(self, sequence: Sequence) -> float:
        """Returns what a first draft needs before, spread over the steps that gain by it."""
        drafting, costs = sequence.drafting, self.costs
        if drafting is None or costs is None:
            return 0.0
        num_left = sequence.params.max_tokens - sequence.num_output_tokens
        return drafting.catch_up_s(sequence.num_tokens, num_left, costs)

    def draft(self, wants: list[Want], max_tokens: int) -> Drafted:
        """Returns what is drafted; what a sequence lacks is computed before, so many tokens at most."""
        drafted: Drafted = {}
        with self._at_its_own_risk():
            if self._guesser is not None:
                self._guesser.catch_up([want.sequence for want in wants], max_tokens)
                wants = [want for want in wants if not self._guesser.lags(want.sequence)]
                begin = time.perf_counter()
                drafted = self._guesser.draft(wants)
                self._note_costs(wants, drafted, time.perf_counter() - begin)
        return drafted

    def _note_costs(self, wants: list[Want], drafted: Drafted, seconds: float) -> None:
        """Corrects what a step costs where all sequences had as many, several, so that what lacked before is little."""
        costs, numbers = (
            self.costs,
            {num for want in wants for num in (want.num_tokens, len(drafted[want.sequence]))},
        )
        if costs is None or len(numbers) != 1 or numbers == {1}:
            return
        attention_s = costs.attention.of(1) * sum(want.sequence.num_tokens for want in wants)
        self._measured.note(len(wants), attention_s, seconds / wants[0].num_tokens)

    def record(self, scheduled: list[Scheduled], seconds: float) -> None:
        """Takes note of a step that has just run, and of how long it took."""
        self._trials.save(seconds)
        with self._at_its_own_risk():
            if self._guesser is not None:
                self._guesser.record(scheduled)

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_came: int) -> None:
        with self._at_its_own_risk():
            if self._guesser is not None:
                self._guesser.note(sequence, num_tokens, num_tried, num_came)

    def settle(self, scheduled: list[Scheduled]) -> None:
        with self._at_its_own_risk():
            if self._guesser is not None:
                self._guesser.settle(scheduled)

    def close(self) -> None:
        self._closed_at_the_end.close()

    @contextmanager
    def _at_its_own_risk(self) -> Iterator[None]:
        """Ends the guesser where it fails: what answers is the model."""
        try:
            yield
        except STOPS:
            raise
        except BaseException:
            logger.exception("what drafts has failed, and drafts no more")
            self._guesser = None
