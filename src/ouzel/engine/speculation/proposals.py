"""Sequences propose tokens that may come next; a step computes them beside the last known one.

Rules
1. What is proposed changes no output (`token_taker`), only how many steps it takes.
2. A grammar's tokens that must come are proposed where they are not appended without a step (`constraints`); what a
   grammar forbids is not.
3. How many are computed is planned for the whole step (`speculation.row_plan`), from what the machine's steps cost and
   from how often guesses came true. Whether those that are not computed would have, the next token tells: of those that
   are looked up at no cost; drafts that do not pay are made now and then for that (`speculation.trials`).
4. A sequence has its tokens from where the text stood before, or drafted (`drafts`): whichever is likelier right.
5. Proposed tokens take blocks and slots that nobody waits for: none is preempted for them.
6. An answer that ended is remembered for those to come, under its request's cache salt.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ouzel.engine.base import ModelRunner
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.sampling.draft_draws import Want
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.drafts import Drafts, guesser_of
from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.drafting import DEFAULT_NUM_DRAFTED
from ouzel.engine.speculation.rules.past_texts import PastTexts
from ouzel.engine.speculation.rules.prompt_lookup import FIRST_CHANCES, Guesses, PromptLookup
from ouzel.engine.speculation.rules.row_plan import MAX_ROWS, Offer, Step, row_plan
from ouzel.engine.speculation.rules.step_costs import AttentionCosts, StepCosts
from ouzel.engine.speculation.step_measurement import MeasuredCosts
from ouzel.engine.state.sequence import Sequence

_MAX_KNOWN = 16  # tokens before the guesses, which a grammar may have appended
_MIN_LONGEST = 4  # guesses of a sequence, however many there are
_NUM_REMEMBERED_PROMPT_TOKENS = 16  # before an answer: by them its beginning is found


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """It says what an engine does to propose tokens."""

    prompt_lookup: bool = True
    draft: ModelRunner | None = None
    predicts: bool = False  # by the layer that the model has for it, instead of a draft model
    costs: StepCosts | None = None  # None: they are measured
    draft_costs: StepCosts | None = None

    @property
    def drafts(self) -> bool:
        return self.predicts or self.draft is not None


class _Idea(msgspec.Struct, frozen=True):
    sequence: Sequence
    token_ids: tuple[int, ...]  # of a draft: none yet
    chances: tuple[float, ...]  # of each, that it and all before it come true
    lookup: Guesses | None = None
    is_drafted: bool = False


class _Given(msgspec.Struct, frozen=True):
    """In the step in progress a sequence has proposed tokens, or could have."""

    idea: _Idea
    num_proposed: int
    num_tokens: int  # that it had
    num_accepted: int  # before the step

    @property
    def came_true(self) -> bool:
        """Tells of a guess that was not proposed whether it was right."""
        return self.idea.sequence.token_ids[self.num_tokens] == self.idea.token_ids[0]


class Proposals:
    def __init__(self, runner: ModelRunner, blocks: BlockManager, speculation: Speculation) -> None:
        self._blocks = blocks
        self._info = runner.info
        self._looks_up = speculation.prompt_lookup
        self._rates = AcceptanceRates(FIRST_CHANCES)
        self._past = PastTexts()
        self._given: list[_Given] = []
        self._costs = MeasuredCosts(runner, blocks, speculation.costs)
        guesser = guesser_of(runner, speculation.draft, predicts=speculation.predicts)
        self._drafts = None
        if guesser is not None:
            self._drafts = Drafts(
                guesser, MeasuredCosts(guesser.runner, blocks, speculation.draft_costs)
            )
        self._last_num_rows: int | None = None  # of the step before,
        self._has_drafted = False  # for which drafts were made that should pay
        self.num_drafts = 0  # counters: sequences of steps with proposals,
        self.num_draft_tokens = 0  # what they proposed,
        self.num_accepted_tokens = 0  # and what of it came

    def measure(self) -> bool:
        """Takes one of the steps that tell what steps cost; returns whether there are more."""
        return self._costs.advance() or (self._drafts is not None and self._drafts.measure())

    def add_to(self, scheduled: list[Scheduled]) -> None:
        """Lets the sequences of a step propose tokens, as many as pay."""
        proposing = [entry.sequence for entry in scheduled if _may_propose(entry)]
        longest = max(_MIN_LONGEST, MAX_ROWS // max(len(proposing), 1))
        ideas = [idea for sequence in proposing if (idea := self._idea(sequence, longest))]
        self._has_drafted = bool(ideas) and self._has_drafted
        if not ideas:
            return
        costs = self._costs.known
        if costs is None or (self._drafts is not None and self._drafts.awaits_costs):
            self.measure()
            return
        offers = [self._offer_of(idea) for idea in ideas]
        draft_costs = None if self._drafts is None else self._drafts.costs
        numbers = row_plan(offers, self._step_of(scheduled, costs), costs, draft_costs)
        plan = list(zip(ideas, numbers, strict=True))
        drafting = []
        for idea, number in self._affordable(plan, len(scheduled)):
            if idea.is_drafted:
                drafting.append((idea, number))
            else:
                self._propose(idea, idea.token_ids[:number], costs.attention)
        self._has_drafted = bool(drafting)
        self._watch(ideas)
        self._draft(drafting, [idea for idea, number in plan if not number], costs.attention)

    def _affordable(
        self, plan: list[tuple[_Idea, int]], num_sequences: int
    ) -> Iterable[tuple[_Idea, int]]:
        """Gives those that have blocks and slots, with the number of tokens for which they have."""
        num_spare = (
            num_sequences
            if self._blocks.states is None
            else self._blocks.states.num_spare(num_sequences)
        )
        for idea, number in plan:
            fitting = (
                self._fitting(idea.sequence, number, num_sequences) if number and num_spare else 0
            )
            if fitting:
                num_spare -= 1
                yield idea, fitting

    def time_step(self, scheduled: list[Scheduled], seconds: float) -> None:
        """Takes note of a step that has just run, and of how long it took.

        Costs are learned of those that only decode, as many rows as before.
        """
        if self._drafts is not None:
            self._drafts.record(scheduled, seconds)
        num_rows = sum(entry.num_new_tokens + len(entry.sequence.proposal) for entry in scheduled)
        is_changed, self._last_num_rows = num_rows != self._last_num_rows, num_rows
        costs = self._costs.known
        if costs is None or is_changed or any(entry.num_new_tokens > 1 for entry in scheduled):
            return
        if costs.several is None or num_rows == len(scheduled):
            pairs = (
                (1 + len(entry.sequence.proposal), entry.sequence.num_tokens) for entry in scheduled
            )
            attention_s = sum(
                costs.attention.of(own_rows) * num_tokens for own_rows, num_tokens in pairs
            )
            self._costs.note(num_rows, attention_s, seconds)

    def note(self, scheduled: list[Scheduled]) -> None:
        """Takes note of what came in a step."""
        for given in self._given:
            sequence = given.idea.sequence
            num_came = sequence.num_accepted_tokens - given.num_accepted
            self.num_drafts += given.num_proposed > 0
            self.num_draft_tokens += given.num_proposed
            self.num_accepted_tokens += num_came
            if sequence.num_tokens == given.num_tokens:  # the step has failed
                continue
            num_tried, num_right = given.num_proposed, num_came
            if not num_tried and given.idea.token_ids:
                num_tried, num_right = 1, int(given.came_true)
            if given.idea.lookup is not None and sequence.lookup is not None and num_tried:
                sequence.lookup.note(given.idea.lookup, num_tried, num_right)
            if given.idea.is_drafted and self._drafts is not None:
                self._drafts.note(sequence, given.num_tokens, num_tried, num_right)
        self._given.clear()
        if self._drafts is not None:
            self._drafts.settle(scheduled)
        for sequence in (entry.sequence for entry in scheduled):
            if sequence.is_finished and sequence.lookup is not None:
                begin = max(0, sequence.num_prompt_tokens - _NUM_REMEMBERED_PROMPT_TOKENS)
                self._past.add(sequence.request.cache_salt, sequence.token_ids[begin:])
                sequence.lookup = None

    def close(self) -> None:
        if self._drafts is not None:
            self._drafts.close()

    def _idea(self, sequence: Sequence, longest: int) -> _Idea | None:
        num_left = min(
            sequence.params.max_tokens - sequence.num_output_tokens,
            self._info.max_model_len - sequence.num_tokens,
        )
        longest = min(longest, num_left - 1)  # the last token is not computed
        asked = sequence.request.speculation.max_proposed_tokens
        if longest < 1 or asked == 0:
            return None
        if forced := _forced(sequence)[:longest]:
            return _Idea(sequence, forced, (1.0,) * len(forced))
        looked_up = self._looked_up(sequence, longest) if self._looks_up else None
        drafted = self._drafted(sequence, longest)
        if looked_up is None or drafted is None:
            return looked_up or drafted
        return looked_up if looked_up.chances[0] >= drafted.chances[0] else drafted

    def _looked_up(self, sequence: Sequence, max_tokens: int) -> _Idea | None:
        settings = sequence.request.speculation
        asked = settings.max_proposed_tokens
        if sequence.lookup is None:
            sequence.lookup = PromptLookup(
                self._rates, settings.predicted_token_ids, sequence.num_prompt_tokens
            )
        guesses = sequence.lookup.guess(
            sequence.token_ids,
            self._past.of(sequence.request.cache_salt),
            max_length=max_tokens if asked is None else min(max_tokens, asked),
            max_ngram=settings.max_ngram_size,
        )
        if guesses is None:
            return None
        token_ids = _allowed(sequence, guesses.token_ids)
        chances = sequence.lookup.chances(guesses)[: len(token_ids)]
        return (
            _Idea(sequence, token_ids[: len(chances)], tuple(chances), lookup=guesses)
            if token_ids
            else None
        )

    def _drafted(self, sequence: Sequence, max_tokens: int) -> _Idea | None:
        asked = sequence.request.speculation.max_proposed_tokens
        number = min(max_tokens, DEFAULT_NUM_DRAFTED if asked is None else asked)
        if self._drafts is None or (drafting := self._drafts.begin(sequence)) is None:
            return None
        return _Idea(sequence, (), tuple(drafting.chances(number)), is_drafted=True)

    def _watch(self, ideas: list[_Idea]) -> None:
        """Remembers what was looked up and is not proposed, to see whether it comes."""
        for idea in ideas:
            if idea.lookup is not None and not idea.sequence.proposal:
                self._given.append(
                    _Given(idea, 0, idea.sequence.num_tokens, idea.sequence.num_accepted_tokens)
                )

    def _draft(
        self, proposing: list[tuple[_Idea, int]], others: list[_Idea], attention: AttentionCosts
    ) -> None:
        """Proposes what is drafted for some; of the others some try, and their token is compared with what comes."""
        if self._drafts is None:
            return
        trying = [
            idea for idea in others if idea.is_drafted and self._drafts.is_trial(idea.sequence)
        ]
        wants = [Want(idea.sequence, number) for idea, number in proposing] + [
            Want(idea.sequence, 1) for idea in trying
        ]
        drafted = self._drafts.draft(wants, self._info.max_num_batched_tokens)
        for idea in (idea for idea, _ in proposing if idea.sequence in drafted):
            self._propose(idea, _allowed(idea.sequence, tuple(drafted[idea.sequence])), attention)
        for idea in trying:
            token_ids = _allowed(idea.sequence, tuple(drafted.get(idea.sequence, ())))
            guess = msgspec.structs.replace(idea, token_ids=token_ids)
            self._given.append(
                _Given(guess, 0, idea.sequence.num_tokens, idea.sequence.num_accepted_tokens)
            )

    def _propose(self, idea: _Idea, token_ids: tuple[int, ...], attention: AttentionCosts) -> None:
        """Lets the rows go as costs least; those of recurrent layers, which follow one another, as a whole."""
        sequence = idea.sequence
        self._given.append(
            _Given(idea, len(token_ids), sequence.num_tokens, sequence.num_accepted_tokens)
        )
        num_rows = sequence.num_uncomputed_tokens + len(token_ids)
        sequence.propose(
            token_ids, is_apart=self._blocks.states is None and attention.is_apart(num_rows)
        )

    def _offer_of(self, idea: _Idea) -> Offer:
        sequence = idea.sequence
        catch_up_s = (
            self._drafts.catch_up_s(sequence)
            if idea.is_drafted and self._drafts is not None
            else 0.0
        )
        return Offer(
            idea.chances,
            sequence.num_tokens,
            sequence.num_uncomputed_tokens,
            idea.is_drafted,
            catch_up_s,
        )

    def _step_of(self, scheduled: list[Scheduled], costs: StepCosts) -> Step:
        return Step(
            num_rows=sum(entry.num_new_tokens for entry in scheduled),
            num_tokens=sum(entry.completes_prompt for entry in scheduled),
            attention_s=sum(
                costs.attention.of(entry.num_new_tokens) * entry.sequence.num_tokens
                for entry in scheduled
                if entry.sequence.is_past_prompt
            ),
            last_num_rows=self._last_num_rows,
            has_drafted=self._has_drafted,
            num_several=sum(entry.num_new_tokens > 1 for entry in scheduled),
            num_rows_of_several=sum(
                entry.num_new_tokens for entry in scheduled if entry.num_new_tokens > 1
            ),
        )

    def _fitting(self, sequence: Sequence, wanted: int, num_sequences: int) -> int:
        """Allocates blocks for the tokens wanted, but for those that would take one somebody may need next."""
        num_tokens = sequence.num_tokens + wanted
        missing = self._blocks.num_missing_blocks(sequence, num_tokens)
        if missing and self._blocks.num_free_blocks - missing < num_sequences:
            return min(
                wanted, len(sequence.block_table) * self._blocks.block_size - sequence.num_tokens
            )
        self._blocks.allocate(sequence, num_tokens)
        return wanted


def _may_propose(entry: Scheduled) -> bool:
    sequence = entry.sequence
    is_short = entry.num_new_tokens <= _MAX_KNOWN
    return (
        is_short
        and entry.completes_prompt
        and sequence.is_past_prompt
        and not (sequence.beams or sequence.forks)
    )


def _allowed(sequence: Sequence, token_ids: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the first ones, which the grammar takes."""
    return (
        token_ids
        if sequence.session is None
        else token_ids[: sequence.session.num_allowed(token_ids)]
    )


def _forced(sequence: Sequence) -> tuple[int, ...]:
    """Returns what must come next, where `constraints` leaves it to the steps."""
    params, session = sequence.params, sequence.session
    if params.num_logprobs is None and not params.bans_tokens:
        return ()
    if sequence.due_token_ids:
        return sequence.due_token_ids
    return () if session is None or session.is_complete else tuple(session.forced())
