"""Sequences propose tokens that may come next; a step computes them beside the last known one.

Rules
1. What is proposed changes no output (`token_taker`), only how many steps it takes.
2. A grammar's tokens that must come are proposed where they are not appended without a step (`constraints`); what a
   grammar forbids is not.
3. How many are computed is planned for the whole step (`speculation.row_plan`), from what the machine's steps cost and
   from how often guesses came true. A sequence whose guesses do not pay tries one now and then.
4. Proposed tokens take blocks and slots that nobody waits for: none is preempted for them.
5. An answer that ended is remembered for those to come, under its request's cache salt.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ouzel.engine.base import ModelRunner
from ouzel.engine.block_manager import BlockManager
from ouzel.engine.scheduler import Scheduled
from ouzel.engine.sequence import Sequence
from ouzel.engine.speculation.acceptance import AcceptanceRates
from ouzel.engine.speculation.past_texts import PastTexts
from ouzel.engine.speculation.prompt_lookup import FIRST_CHANCES, Guesses, PromptLookup
from ouzel.engine.speculation.row_plan import Offer, Step, row_plan
from ouzel.engine.speculation.step_costs import StepCosts
from ouzel.engine.step_measurement import measurement

logger = logging.getLogger(__name__)

_TRY_EVERY = 32  # tokens of a sequence whose guesses do not pay
_NUM_REMEMBERED_PROMPT_TOKENS = 16  # before an answer: by them its beginning is found


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """It says what an engine does to propose tokens."""

    costs: StepCosts | None = None  # None: they are measured


class _Idea(msgspec.Struct, frozen=True):
    sequence: Sequence
    token_ids: tuple[int, ...]
    chances: tuple[float, ...]
    guesses: Guesses | None  # None: tokens that a grammar forces


class Proposals:
    def __init__(self, runner: ModelRunner, blocks: BlockManager, speculation: Speculation) -> None:
        self._blocks = blocks
        self._max_model_len = runner.info.max_model_len
        self._rates = AcceptanceRates(FIRST_CHANCES)
        self._past = PastTexts()
        self._given: list[tuple[_Idea, int, int]] = []  # of the step in progress: tokens proposed; accepted before
        self._costs = speculation.costs
        self._measurement = measurement(runner, blocks) if self._costs is None else None
        self.num_drafts = 0  # counters: sequences of steps with proposals,
        self.num_draft_tokens = 0  # what they proposed,
        self.num_accepted_tokens = 0  # and what of it came

    def measure(self) -> bool:
        """Takes one of the steps that tell what steps cost; returns whether there are more."""
        if self._measurement is None:
            return False
        try:
            next(self._measurement)
        except StopIteration as end:
            self._measurement, self._costs = None, end.value
            logger.info("costs of steps: %s", self._costs)
        return self._measurement is not None

    def add_to(self, scheduled: list[Scheduled]) -> None:
        """Lets the sequences of a step propose tokens, as many as pay."""
        ideas = [idea for entry in scheduled if self._may_propose(entry) and (idea := self._idea(entry.sequence))]
        if not ideas:
            return
        if self._costs is None:
            self.measure()
            return
        numbers = row_plan(
            [Offer(idea.chances, idea.sequence.num_tokens) for idea in ideas],
            Step(
                num_rows=sum(entry.num_new_tokens for entry in scheduled),
                num_tokens=sum(entry.completes_prompt for entry in scheduled),
                num_context_tokens=sum(entry.sequence.num_tokens for entry in scheduled if entry.num_new_tokens == 1),
            ),
            self._costs,
        )
        spare = len(scheduled) if self._blocks.states is None else self._blocks.states.num_spare(len(scheduled))
        for idea, number in zip(ideas, numbers, strict=True):
            wanted = number or int(idea.sequence.num_output_tokens % _TRY_EVERY == 0)
            if spare and (fitting := self._fitting(idea.sequence, wanted, len(scheduled))):
                spare -= 1
                self._given.append((idea, fitting, idea.sequence.num_accepted_tokens))
                idea.sequence.propose(idea.token_ids[:fitting])

    def note(self, scheduled: Iterable[Scheduled]) -> None:
        """Takes note of what came in a step."""
        for idea, num_proposed, num_before in self._given:
            num_came = idea.sequence.num_accepted_tokens - num_before
            self.num_drafts += 1
            self.num_draft_tokens += num_proposed
            self.num_accepted_tokens += num_came
            if idea.guesses is not None and idea.sequence.lookup is not None:
                idea.sequence.lookup.note(idea.guesses, num_proposed, num_came)
        self._given.clear()
        for sequence in (entry.sequence for entry in scheduled):
            if sequence.is_finished and sequence.lookup is not None:
                begin = max(0, sequence.num_prompt_tokens - _NUM_REMEMBERED_PROMPT_TOKENS)
                self._past.add(sequence.request.cache_salt, sequence.token_ids[begin:])
                sequence.lookup = None

    def _may_propose(self, entry: Scheduled) -> bool:
        sequence = entry.sequence
        return entry.completes_prompt and sequence.is_past_prompt and not sequence.beams and not sequence.forks

    def _idea(self, sequence: Sequence) -> _Idea | None:
        request = sequence.request
        settings = request.speculation
        num_left = min(
            sequence.params.max_tokens - sequence.num_output_tokens, self._max_model_len - sequence.num_tokens
        )
        if num_left <= 1:
            return None  # the last token is not computed
        if forced := _forced(sequence)[: num_left - 1]:
            return _Idea(sequence, forced, (1.0,) * len(forced), None)
        if settings.max_proposed_tokens == 0:
            return None
        if sequence.lookup is None:
            sequence.lookup = PromptLookup(self._rates, settings.predicted_token_ids, sequence.num_prompt_tokens)
        guesses = sequence.lookup.guess(
            sequence.token_ids,
            self._past.of(request.cache_salt),
            max_length=min(num_left - 1, settings.max_proposed_tokens or num_left),
            max_ngram=settings.max_ngram_size,
        )
        if guesses is None:
            return None
        token_ids = guesses.token_ids
        if sequence.session is not None:
            token_ids = token_ids[: sequence.session.num_allowed(token_ids)]
        chances = sequence.lookup.chances(guesses)[: len(token_ids)]
        return _Idea(sequence, token_ids, tuple(chances), guesses) if token_ids else None

    def _fitting(self, sequence: Sequence, wanted: int, num_sequences: int) -> int:
        """Allocates blocks for the tokens wanted, but for those that would take one somebody may need next."""
        if not wanted:
            return 0
        num_tokens = sequence.num_tokens + wanted
        missing = self._blocks.num_missing_blocks(sequence, num_tokens)
        if missing and self._blocks.num_free_blocks - missing < num_sequences:
            return min(wanted, len(sequence.block_table) * self._blocks.block_size - sequence.num_tokens)
        self._blocks.allocate(sequence, num_tokens)
        return wanted


def _forced(sequence: Sequence) -> tuple[int, ...]:
    """Returns what must come next, where `constraints` leaves it to the steps."""
    params, session = sequence.params, sequence.session
    if params.num_logprobs is None and not params.bans_tokens:
        return ()
    if sequence.due_token_ids:
        return sequence.due_token_ids
    return () if session is None or session.is_complete else tuple(session.forced())
