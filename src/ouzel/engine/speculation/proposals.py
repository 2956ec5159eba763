"""Proposes tokens for sequences; a step computes them together with the last known token.

Rules
1. A proposal changes no output (`token_taker`), only the number of steps.
2. Tokens forced by a grammar are proposed if they are not appended without a step (`constraints`).
   Tokens that a grammar forbids are not proposed.
3. The number of computed tokens is planned for the whole step (`row_plan`), by the measured costs
   of steps and the rates of acceptance. The next token shows whether a proposal that was not
   computed would have been accepted: for look-ups this costs nothing; drafts that do not pay are
   made from time to time as trials (`trials`).
4. The source of a sequence's proposal is the text look-up or the drafts (`drafts`): the one more
   likely to be accepted.
5. Proposed tokens take only free blocks and slots: no sequence is preempted for them.
6. Finished answers are kept for look-ups by later requests with the same cache salt.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ouzel.engine.base import ModelRunner
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.sampling.draft_draws import DraftRequest
from ouzel.engine.scheduling.image_encoder import NO_IMAGES, ImageEncoder, NoImages
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.candidates import Candidate, OpenProposal, open_proposal
from ouzel.engine.speculation.drafts import Drafts, make_draft_source
from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.drafting import DEFAULT_NUM_DRAFTED
from ouzel.engine.speculation.rules.past_texts import PastTexts
from ouzel.engine.speculation.rules.prompt_lookup import FIRST_CHANCES, PromptLookup
from ouzel.engine.speculation.rules.row_plan import MAX_ROWS, RowCandidate, Step, plan_rows
from ouzel.engine.speculation.rules.step_costs import AttentionCosts, StepCosts
from ouzel.engine.speculation.step_measurement import MeasuredCosts
from ouzel.engine.state.sequence import Sequence

_MAX_KNOWN = 16  # uncomputed tokens that a sequence may have, for example appended by a grammar
_MIN_LONGEST = 4  # longest proposal of a sequence, however many sequences there are
# prompt tokens kept before an answer, to find the answer's beginning
_NUM_REMEMBERED_PROMPT_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """The options of an engine for proposals."""

    prompt_lookup: bool = True
    draft: ModelRunner | None = None
    # the model's prediction layer or EAGLE-3 head makes drafts, instead of a draft model
    predicts: bool = False
    # False: that layer cannot read features, so requests with images have no drafts of it
    reads_images: bool = True
    assists: bool = False  # an assistant that reads the model's keys and values makes drafts
    costs: StepCosts | None = None  # None: measured
    draft_costs: StepCosts | None = None

    @property
    def drafts(self) -> bool:
        return self.predicts or self.assists or self.draft is not None


class Proposals:
    """Chooses and counts the proposals of an engine's sequences."""

    def __init__(
        self,
        runner: ModelRunner,
        blocks: BlockManager,
        speculation: Speculation,
        images: ImageEncoder | NoImages = NO_IMAGES,
    ) -> None:
        self._blocks = blocks
        self._info = runner.info
        self._looks_up = speculation.prompt_lookup
        self._rates = AcceptanceRates(FIRST_CHANCES)
        self._past = PastTexts()
        self._open: list[OpenProposal] = []
        self._costs = MeasuredCosts(runner, blocks, speculation.costs)
        source = make_draft_source(
            runner,
            speculation.draft,
            images if speculation.reads_images else None,
            predicts=speculation.predicts,
            assists=speculation.assists,
        )
        self._drafts = None
        if source is not None:
            self._drafts = Drafts(
                source, MeasuredCosts(source.runner, blocks, speculation.draft_costs)
            )
        self._last_num_rows: int | None = None  # number of rows in the step before
        self._has_drafted = False  # whether the step before had drafts that should pay
        self.num_drafts = 0  # counter of proposals, one for each sequence and step
        self.num_draft_tokens = 0  # counter of proposed tokens
        self.num_accepted_tokens = 0  # counter of accepted tokens

    def measure(self) -> bool:
        """Measures one step; returns whether more measurements remain."""
        return self._costs.advance() or (self._drafts is not None and self._drafts.measure())

    def add_to(self, scheduled: list[Scheduled]) -> None:
        """Sets the proposals of the scheduled sequences, as many tokens as pay."""
        proposing = [entry.sequence for entry in scheduled if _may_propose(entry)]
        longest = max(_MIN_LONGEST, MAX_ROWS // max(len(proposing), 1))
        candidates = [
            candidate
            for sequence in proposing
            if (candidate := self._find_candidate(sequence, longest))
        ]
        self._has_drafted = bool(candidates) and self._has_drafted
        if not candidates:
            return
        costs = self._costs.known
        if costs is None or (self._drafts is not None and self._drafts.awaits_costs):
            self.measure()
            return
        row_candidates = [self._describe_rows(candidate) for candidate in candidates]
        draft_costs = None if self._drafts is None else self._drafts.costs
        numbers = plan_rows(
            row_candidates, self._describe_step(scheduled, costs), costs, draft_costs
        )
        plan = list(zip(candidates, numbers, strict=True))
        drafting = []
        for candidate, number in self._fit_candidates(plan, len(scheduled)):
            if candidate.is_drafted:
                drafting.append((candidate, number))
            else:
                self._propose(candidate, candidate.token_ids[:number], costs.attention)
        self._has_drafted = bool(drafting)
        self._watch(candidates)
        self._draft(
            drafting, [candidate for candidate, number in plan if not number], costs.attention
        )

    def _fit_candidates(
        self, plan: list[tuple[Candidate, int]], num_sequences: int
    ) -> Iterable[tuple[Candidate, int]]:
        """Yields the candidates that get blocks and slots, with the number of tokens that fit."""
        num_spare = (
            num_sequences
            if self._blocks.states is None
            else self._blocks.states.num_spare(num_sequences)
        )
        for candidate, number in plan:
            fitting = (
                self._allocate(candidate.sequence, number, num_sequences)
                if number and num_spare
                else 0
            )
            if fitting:
                num_spare -= 1
                yield candidate, fitting

    def time_step(self, scheduled: list[Scheduled], seconds: float) -> None:
        """Takes the duration of the step that has just run, for the estimates of costs.

        Steps that only decode, with the same number of rows as the step before, update the costs.
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
                costs.attention.estimate(own_rows) * num_tokens for own_rows, num_tokens in pairs
            )
            self._costs.note(num_rows, attention_s, seconds)

    def note(self, scheduled: list[Scheduled]) -> None:
        """Compares the proposals of a step with its tokens, and updates the rates of acceptance."""
        for proposal in self._open:
            sequence = proposal.candidate.sequence
            num_accepted = sequence.num_accepted_tokens - proposal.num_accepted
            self.num_drafts += proposal.num_proposed > 0
            self.num_draft_tokens += proposal.num_proposed
            self.num_accepted_tokens += num_accepted
            if sequence.num_tokens == proposal.num_tokens:  # the step has failed
                continue
            num_tried, num_right = proposal.num_proposed, num_accepted
            if not num_tried and proposal.candidate.token_ids:
                num_tried, num_right = 1, int(proposal.would_be_accepted)
            if proposal.candidate.lookup is not None and sequence.lookup is not None and num_tried:
                sequence.lookup.note(proposal.candidate.lookup, num_tried, num_right)
            if proposal.candidate.is_drafted and self._drafts is not None:
                self._drafts.note(sequence, proposal.num_tokens, num_tried, num_right)
        self._open.clear()
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

    def _find_candidate(self, sequence: Sequence, longest: int) -> Candidate | None:
        num_left = min(
            sequence.params.max_tokens - sequence.num_output_tokens,
            self._info.max_model_len - sequence.num_tokens,
        )
        longest = min(longest, num_left - 1)  # the last token is never computed
        max_proposed = sequence.request.speculation.max_proposed_tokens
        if longest < 1 or max_proposed == 0:
            return None
        if forced := _find_forced(sequence)[:longest]:
            return Candidate(sequence, forced, (1.0,) * len(forced))
        looked_up = self._look_up(sequence, longest) if self._looks_up else None
        drafted = self._plan_draft(sequence, longest)
        if looked_up is None or drafted is None:
            return looked_up or drafted
        return looked_up if looked_up.chances[0] >= drafted.chances[0] else drafted

    def _look_up(self, sequence: Sequence, max_tokens: int) -> Candidate | None:
        settings = sequence.request.speculation
        max_proposed = settings.max_proposed_tokens
        if sequence.lookup is None:
            sequence.lookup = PromptLookup(
                self._rates, settings.predicted_token_ids, sequence.num_prompt_tokens
            )
        proposal = sequence.lookup.propose(
            sequence.token_ids,
            self._past.find(sequence.request.cache_salt),
            max_length=max_tokens if max_proposed is None else min(max_tokens, max_proposed),
            max_ngram=settings.max_ngram_size,
        )
        if proposal is None:
            return None
        token_ids = _allowed_prefix(sequence, proposal.token_ids)
        chances = sequence.lookup.chances(proposal)[: len(token_ids)]
        if not token_ids:
            return None
        return Candidate(sequence, token_ids[: len(chances)], tuple(chances), lookup=proposal)

    def _plan_draft(self, sequence: Sequence, max_tokens: int) -> Candidate | None:
        max_proposed = sequence.request.speculation.max_proposed_tokens
        number = min(max_tokens, DEFAULT_NUM_DRAFTED if max_proposed is None else max_proposed)
        if self._drafts is None or (drafting := self._drafts.begin(sequence)) is None:
            return None
        return Candidate(sequence, (), tuple(drafting.chances(number)), is_drafted=True)

    def _watch(self, candidates: list[Candidate]) -> None:
        """Notes the look-ups that are not proposed, to compare them with the next token."""
        for candidate in candidates:
            if candidate.lookup is not None and not candidate.sequence.proposal:
                self._open.append(open_proposal(candidate, 0))

    def _draft(
        self,
        proposing: list[tuple[Candidate, int]],
        others: list[Candidate],
        attention: AttentionCosts,
    ) -> None:
        """Drafts: proposes the tokens of some candidates, and only watches a trial token of
        others.
        """
        if self._drafts is None:
            return
        trying = [
            candidate
            for candidate in others
            if candidate.is_drafted and self._drafts.is_trial(candidate.sequence)
        ]
        requests = [DraftRequest(candidate.sequence, number) for candidate, number in proposing] + [
            DraftRequest(candidate.sequence, 1) for candidate in trying
        ]
        drafted = self._drafts.draft(requests, self._info.max_num_batched_tokens)
        for candidate in (candidate for candidate, _ in proposing if candidate.sequence in drafted):
            self._propose(
                candidate,
                _allowed_prefix(candidate.sequence, tuple(drafted[candidate.sequence])),
                attention,
            )
        for candidate in trying:
            token_ids = _allowed_prefix(
                candidate.sequence, tuple(drafted.get(candidate.sequence, ()))
            )
            watched = msgspec.structs.replace(candidate, token_ids=token_ids)
            self._open.append(open_proposal(watched, 0))

    def _propose(
        self, candidate: Candidate, token_ids: tuple[int, ...], attention: AttentionCosts
    ) -> None:
        """Sets a proposal, with its rows apart or together, at the lower cost.

        With recurrent layers the rows stay together, because each depends on the row before.
        """
        sequence = candidate.sequence
        self._open.append(open_proposal(candidate, len(token_ids)))
        num_rows = sequence.num_uncomputed_tokens + len(token_ids)
        sequence.propose(
            token_ids, is_apart=self._blocks.states is None and attention.is_apart(num_rows)
        )

    def _describe_rows(self, candidate: Candidate) -> RowCandidate:
        sequence = candidate.sequence
        catch_up_s = (
            self._drafts.catch_up_s(sequence)
            if candidate.is_drafted and self._drafts is not None
            else 0.0
        )
        return RowCandidate(
            candidate.chances,
            sequence.num_tokens,
            sequence.num_uncomputed_tokens,
            candidate.is_drafted,
            catch_up_s,
        )

    def _describe_step(self, scheduled: list[Scheduled], costs: StepCosts) -> Step:
        return Step(
            num_rows=sum(entry.num_new_tokens for entry in scheduled),
            num_tokens=sum(entry.completes_prompt for entry in scheduled),
            attention_s=sum(
                costs.attention.estimate(entry.num_new_tokens) * entry.sequence.num_tokens
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

    def _allocate(self, sequence: Sequence, wanted: int, num_sequences: int) -> int:
        """Allocates blocks for proposed tokens; returns the number of tokens that fit.

        Each sequence of the step must still find a free block for its next token.
        """
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


def _allowed_prefix(sequence: Sequence, token_ids: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the first tokens that the grammar allows."""
    if sequence.session is None:
        return token_ids
    return token_ids[: sequence.session.num_allowed(token_ids)]


def _find_forced(sequence: Sequence) -> tuple[int, ...]:
    """Returns the tokens that must come next but that `constraints` does not append."""
    params, session = sequence.params, sequence.session
    if params.num_logprobs is None and not params.bans_tokens:
        return ()
    if sequence.due_token_ids:
        return sequence.due_token_ids
    return () if session is None or session.is_complete else tuple(session.forced())
