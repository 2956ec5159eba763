"""Explores the most likely outputs of one request with several sequences, the beams.

Rules
1. The search finds the same outputs as `transformers.generate(num_beams=...)`. Each step ranks all
   continuations of all beams by the sum of their log probabilities. A continuation that ends (end
   token, stop token, length limit) finishes if it is among the first `width`; the first `width`
   continuations that do not end are the next beams. The `width` finished beams with the best scores
   are kept.
2. Adjustments (logit_bias, penalties, min_tokens and so on) change log probabilities, as in
   transformers: the repetition penalty multiplies them, and nothing is normalised afterwards.
3. Groups of `width / num_groups` beams search one after the other in each step. A token costs
   `diversity_penalty` for each beam of an earlier group that takes it in the same step; the beam's
   score keeps that cost. A group that is done takes no further tokens. The winners are the best
   beams of all groups.
4. Beams share their full blocks. One continuation of a beam takes over its blocks; the others fork
   from it.
5. The beams of a search are scheduled, and preempted, together. A preempted search starts again
   from the prompt; it uses no random numbers, so it finds the same outputs. It is admitted only
   when all its beams fit into the KV cache at their full length.
6. The mask of a grammar is applied after the adjustments; each beam has a session of its own. A
   beam whose grammar is complete takes an end token like any other beam, at the cost of its log
   probability. No token is appended without a model step.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.grammars.session import Session
from ouzel.engine.sampling.constraints import Constraints
from ouzel.engine.sampling.own_logprobs import OwnLogprobs, log_sum_exp
from ouzel.engine.sampling.sampler import adjust
from ouzel.engine.sampling.transcript_rules import follow_transcript_rules
from ouzel.engine.scheduling.scheduler import Scheduler
from ouzel.engine.state.columns import Row, largest
from ouzel.engine.state.sequence import Sequence
from ouzel.sampling import BeamSearchParams
from ouzel.types.step_output import FinishReason, PositionLogprobs, RequestTiming


@dataclass(frozen=True, slots=True)
class Continuation:
    """A beam with one more token, a candidate for the next step."""

    beam: Sequence
    token_id: int
    score: float  # score with this token
    logprobs: list[PositionLogprobs]  # logprobs of the whole output, if requested


@dataclass(frozen=True, slots=True)
class FinishedBeam:
    """An output that the search has found."""

    token_ids: list[int]
    logprobs: list[PositionLogprobs]
    score: float  # length-penalised score
    reason: FinishReason


class BeamSearch:
    """Searches the best outputs of one request; each call of `advance` is one step."""

    def __init__(
        self, choice: Sequence, max_model_len: int, session: Session | None = None
    ) -> None:
        """Starts from the prompt of `choice`.

        `session` belongs to the request's grammar and has accepted no token yet.
        """
        request = choice.request
        assert request.params.beam_search is not None
        self.request = request
        self.num_cached_tokens = 0
        self._session = session
        self._timing: RequestTiming | None = None  # timing of the first step
        self._params = request.params.beam_search
        self._max_len = min(
            request.params.max_tokens, max_model_len - len(request.prompt_token_ids)
        )
        self._groups: list[_Group] = []
        first = choice.make_beam()
        # Running beams, most likely first within each group. Every beam holds this same list.
        self.beams = first.beams = [first]

    @property
    def timing(self) -> RequestTiming:
        """Returns the times of a search that has taken a step."""
        assert self._timing is not None
        return self._timing

    @property
    def is_over(self) -> bool:
        return all(group.is_done for group in self._groups)

    def winners(self) -> list[FinishedBeam]:
        """Returns the finished beams, best first."""
        finished = [each for group in self._groups for each in group.finished]
        return sorted(finished, key=lambda each: -each.score)

    def advance(
        self, rows: Mapping[Sequence, Row], scheduler: Scheduler, constraints: Constraints
    ) -> list[tuple[int, int]]:
        """Takes one step on the logits of each beam, which are overwritten.

        Returns the blocks to copy, as (source, destination), before the next forward pass. Raises
        ValueError for logits that are not numbers, and GrammarBroken.
        """
        if self.beams[0].num_output_tokens == 0:
            self._begin()
        logprobs = {beam: _normalise(rows[beam], beam) for beam in self.beams}
        constraints.mask_beams({beam: rows[beam] for beam in self.beams})
        chosen: list[list[Continuation]] = []
        earlier_token_ids: list[int] = []
        for group in self._groups:
            chosen.append([] if group.is_done else group.choose(rows, logprobs, earlier_token_ids))
        return self._branch(chosen, scheduler)

    def _begin(self) -> None:
        first = self.beams[0]
        first.first_token_at = time.monotonic()
        first.session = None if self._session is None else self._session.fork()
        self._timing = self._timing or first.timing()
        self.num_cached_tokens = first.num_cached_tokens
        self._groups = [
            _Group(self._params, self._max_len, first) for _ in range(self._params.num_groups)
        ]

    def _branch(
        self, chosen: list[list[Continuation]], scheduler: Scheduler
    ) -> list[tuple[int, int]]:
        """Turns the chosen continuations into the beams; returns the blocks to copy.

        Returns no blocks if the search had to be preempted for lack of room.
        """
        # Each heir takes over the blocks of its beam.
        heirs = {each.beam: each for continuations in chosen for each in continuations}
        for beam in tuple(self.beams):
            if beam not in heirs:
                self.beams.remove(beam)
                scheduler.remove(beam)
        copies: list[tuple[int, int]] = []
        branches: list[list[Sequence]] = []
        for continuations in chosen:
            branches.append([])
            for each in continuations:
                beam = each.beam
                if each is not heirs[beam]:
                    if not scheduler.make_room_to_fork(beam):
                        return []
                    beam, copy = _fork(each, scheduler)
                    copies += [] if copy is None else [copy]
                    self.beams.append(beam)
                branches[-1].append(beam)
        for beam, each in heirs.items():  # after the forks, which start with the tokens before
            beam.token_ids.append(each.token_id)
            beam.score, beam.logprobs = each.score, each.logprobs
        self._regroup(branches)
        return copies

    def _regroup(self, branches: list[list[Sequence]]) -> None:
        """Assigns the beams to their groups, and passes the new tokens to the grammar sessions."""
        for group, group_beams in zip(self._groups, branches, strict=True):
            group.beams = group_beams
        self.beams[:] = [beam for group in self._groups for beam in group.beams]
        for beam in self.beams if self._session is not None else ():
            assert beam.session is not None
            beam.session.accept(beam.token_ids[-1])


def _fork(
    continuation: Continuation, scheduler: Scheduler
) -> tuple[Sequence, tuple[int, int] | None]:
    """Forks a beam for a continuation; returns the new beam and the block to copy."""
    parent = continuation.beam
    beam = parent.make_beam()
    beam.token_ids = [*parent.token_ids, continuation.token_id]
    beam.score, beam.logprobs = continuation.score, continuation.logprobs
    beam.session = None if parent.session is None else parent.session.fork()
    return beam, scheduler.start_fork(parent, beam)


class _Group:
    """A group of beams, ranked apart; the tokens of earlier groups get a penalty (diversity)."""

    def __init__(self, params: BeamSearchParams, max_len: int, first: Sequence) -> None:
        self.beams = [first]  # running beams, most likely first
        self.finished: list[FinishedBeam] = []  # best first, at most `width`
        self.is_done = False
        self._params = params
        self._width = params.width // params.num_groups
        self._max_len = max_len

    def choose(
        self,
        rows: Mapping[Sequence, Row],
        logprobs: Mapping[Sequence, OwnLogprobs | None],
        earlier_token_ids: list[int],
    ) -> list[Continuation]:
        """Returns the next beams, most likely first, or none when the group is done.

        `rows` has adjusted log probabilities. `earlier_token_ids` has the tokens of the groups
        before; the group adds its own tokens, except stop tokens.
        """
        beam_numbers, token_ids, scores = self._rank(rows, earlier_token_ids)
        len_now = self.beams[0].num_output_tokens + 1
        is_last = len_now >= self._max_len
        going_on: list[Continuation] = []
        for rank, (number, token_id, score) in enumerate(
            zip(beam_numbers, token_ids, scores, strict=True)
        ):
            if rank >= self._width and len(going_on) == self._width:
                break
            beam = self.beams[number]
            continuation = _continuation(beam, token_id, score, logprobs[beam])
            is_stop = _is_stop(beam, token_id)
            if not is_stop:
                going_on.append(continuation)
            if rank < self._width and (is_stop or is_last):
                self._finish(continuation, FinishReason.STOP if is_stop else FinishReason.LENGTH)
        earlier_token_ids += [each.token_id for each in going_on]
        self.is_done = is_last or not going_on or self._is_decided(going_on[0].score, len_now)
        return [] if self.is_done else going_on

    def _rank(
        self, rows: Mapping[Sequence, Row], earlier_token_ids: list[int]
    ) -> tuple[list[int], list[int], list[float]]:
        """Returns beam number, token id and score of the best continuations, best first.

        Takes from each beam `width` continuations and one more for every token that may end it:
        enough to find `width` that do not end.
        """
        token_ids: list[NDArray[np.int64]] = []
        scores: list[NDArray[np.float64]] = []
        for beam in self.beams:
            row = rows[beam]
            if earlier_token_ids:
                row = row.copy()  # the groups still share the row of the prompt
                np.subtract.at(row, earlier_token_ids, np.float32(self._params.diversity_penalty))
            best = largest(row, min(self._width + len(beam.stop_token_ids), row.size))
            best = best[np.isfinite(row[best])]
            token_ids.append(best)
            scores.append(row[best].astype(np.float64) + beam.score)
        all_scores = np.concatenate(scores)
        order = np.argsort(-all_scores, kind="stable")
        beam_numbers = np.repeat(np.arange(len(self.beams)), [each.size for each in scores])
        return (
            beam_numbers[order].tolist(),
            np.concatenate(token_ids)[order].tolist(),
            all_scores[order].tolist(),
        )

    def _finish(self, last: Continuation, reason: FinishReason) -> None:
        token_ids = [*last.beam.token_ids[last.beam.num_prompt_tokens :], last.token_id]
        score = last.score / math.pow(len(token_ids), self._params.length_penalty)
        self.finished.append(FinishedBeam(token_ids, last.logprobs, score, reason))
        self.finished.sort(key=lambda each: -each.score)
        del self.finished[self._width :]

    def _is_decided(self, best_running_score: float, len_now: int) -> bool:
        """Tells whether no running beam can be expected to beat the worst finished beam."""
        if len(self.finished) < self._width:
            return False
        if self._params.early_stopping is True:
            return True
        length_penalty = self._params.length_penalty
        best_len = (
            self._max_len
            if self._params.early_stopping == "never" and length_penalty > 0
            else len_now
        )
        return best_running_score / math.pow(best_len, length_penalty) <= self.finished[-1].score


def _normalise(row: Row, beam: Sequence) -> OwnLogprobs | None:
    """Turns logits into adjusted log probabilities in place.

    Returns the model's own log probabilities if the request wants to see them. The rules of a
    transcript come before both.
    """
    follow_transcript_rules(row, beam)
    normaliser = log_sum_exp(row, float(row.max()))
    if math.isnan(normaliser):
        raise ValueError("the model's logits are not numbers")
    params = beam.params
    own_logprobs = None
    if params.num_logprobs is not None:
        own_logprobs = OwnLogprobs(row.copy(), params.num_logprobs, params.logprob_token_ids)
    row -= np.float32(normaliser)
    adjust(row, beam)
    return own_logprobs


def _continuation(
    beam: Sequence, token_id: int, score: float, own: OwnLogprobs | None
) -> Continuation:
    """Makes a continuation. `own` is the model's log probabilities; None if they are not shown."""
    path = [] if own is None else [*beam.logprobs, own.at(token_id)]
    return Continuation(beam, token_id, score, path)


def _is_stop(beam: Sequence, token_id: int) -> bool:
    return token_id in beam.stop_token_ids or (
        beam.session is not None and beam.session.is_complete
    )
