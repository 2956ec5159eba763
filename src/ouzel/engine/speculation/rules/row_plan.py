"""Chooses how many proposed tokens a step computes, for the most tokens per second.

A proposed token yields its probability of acceptance and costs a row; a drafted token also costs a
step of the draft model. Rows go to the likeliest tokens over all sequences, as long as they raise
the expected speed.

A step with another number of rows than the step before costs more. So the last number is taken
again unless the gain of another one is larger. The way back to no proposals is not charged:
otherwise a large number of rows, once taken, would stay for no gain. At the start of drafts the
change is charged to several steps, because the number of drafted tokens is always the wanted one.

States of recurrent layers go back unless all proposed tokens are accepted, and the accepted tokens
are computed again in the next step: this is charged by its probability. A step with such rows is
slow, with or without proposals, so a comparison within the step would favour proposals too much.
Instead it takes the number that falls least behind the fastest steps without repeated rows. Source:
Howard, Dynamic Programming and Markov Processes, 1960: maximising an average reward.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod

import msgspec

from ouzel.engine.speculation.rules.step_costs import SeveralCosts, StepCosts

MAX_ROWS = 64  # sampled rows of a step with proposals: 39 MB of logits with Qwen3's vocabulary
MIN_GAIN = 1.03  # a smaller gain may be noise of the measurement
MIN_GAIN_OF_DRAFTS = 1.05  # where no drafts were made before: their gain is less certain
_STEPS_OF_DRAFTS = 8  # steps that share the change of the row count when drafts begin


class RowCandidate(msgspec.Struct, frozen=True):
    """The tokens that one sequence may propose, one after the other."""

    # chance of each token that it and all before it are accepted: never rising
    chances: tuple[float, ...]
    num_context_tokens: int  # tokens that a row attends to
    num_rows: int = 1  # rows of the sequence's known tokens
    is_drafted: bool = False  # each token costs a step of the draft model, which sequences share
    # seconds for the draft model's missing tokens, divided by the steps that profit
    catch_up_s: float = 0.0


class _Token(msgspec.Struct, frozen=True):
    """One token that may be proposed, with its chance of being reached and accepted."""

    chance: float
    depth: int
    candidate: int


class Step(msgspec.Struct, frozen=True):
    """The rows that are computed in any case."""

    num_rows: int
    num_tokens: int  # tokens that these rows yield
    attention_s: float = 0.0  # seconds for the cached context, without proposals
    last_num_rows: int | None = None  # rows of the step before
    has_drafted: bool = False  # whether the step before had drafts
    num_several: int = 0  # sequences with several rows
    num_rows_of_several: int = 0


class _Plan(msgspec.Struct, frozen=True):
    """A step that computes the `num_proposed` tokens with the highest chances."""

    num_proposed: int
    num_tokens: float  # expected number of tokens
    seconds: float  # expected seconds, with the rows to compute again
    is_drafted: bool

    @property
    def speed(self) -> float:
        return self.num_tokens / self.seconds


def plan_rows(
    candidates: Sequence[RowCandidate], step: Step, costs: StepCosts, draft: StepCosts | None = None
) -> list[int]:
    """Returns the number of proposed tokens for each candidate."""
    tokens = [
        _Token(chance, depth, number)
        for number, candidate in enumerate(candidates)
        for depth, chance in enumerate(candidate.chances)
    ]
    tokens.sort(key=lambda token: (-token.chance, token.depth))
    tokens = tokens[: max(0, MAX_ROWS - step.num_tokens)]
    plans = list(_make_plans(tokens, candidates, step, costs, draft))
    best = _find_fastest(plans, has_drafted=step.has_drafted)
    repeating = [candidate for candidate in candidates if candidate.num_rows > 1]
    if repeating and costs.several is not None:
        settled_candidates = [
            msgspec.structs.replace(candidate, num_rows=1) for candidate in candidates
        ]
        lasting = _find_fastest(
            _make_plans(tokens, settled_candidates, _settle(step, repeating), costs, draft),
            has_drafted=step.has_drafted,
        )
        best = max(plans, key=lambda plan: plan.num_tokens - lasting.speed * plan.seconds)
    counts = Counter(token.candidate for token in tokens[: best.num_proposed])
    return [counts[number] for number in range(len(candidates))]


def _settle(step: Step, repeating: list[RowCandidate]) -> Step:
    """Returns the step without rows that are computed again."""
    num_rows = sum(candidate.num_rows for candidate in repeating)
    return msgspec.structs.replace(
        step,
        num_rows=step.num_rows - num_rows + len(repeating),
        num_several=step.num_several - len(repeating),
        num_rows_of_several=step.num_rows_of_several - num_rows,
    )


def _find_fastest(plans: Iterable[_Plan], *, has_drafted: bool) -> _Plan:
    """Returns the fastest plan.

    A plan with proposals must exceed the first, which has none, by a margin.
    """
    plain, *others = plans
    best, least = plain, MIN_GAIN * plain.speed
    least_with_drafts = least if has_drafted else MIN_GAIN_OF_DRAFTS * plain.speed
    for plan in others:
        if plan.speed > max(least_with_drafts if plan.is_drafted else least, best.speed):
            best = plan
    return best


def _make_plans(
    tokens: list[_Token],
    candidates: Sequence[RowCandidate],
    step: Step,
    costs: StepCosts,
    draft: StepCosts | None,
) -> Iterator[_Plan]:
    """Yields the plan without proposals, and a plan for each further token."""
    num_several, num_own = step.num_several, step.num_rows_of_several
    num_tokens, attention_s, draft_s = float(step.num_tokens), step.attention_s, 0.0
    yield _Plan(
        0,
        num_tokens,
        costs.estimate_step(step.num_rows, num_several, num_own) + attention_s,
        is_drafted=False,
    )
    num_drafted = Counter[int]()  # sequences with a drafted token, by depth
    # for each candidate, the probability that all its tokens so far are accepted
    all_accepted = [1.0] * len(candidates)
    for place, token in enumerate(tokens, start=1):
        candidate = candidates[token.candidate]
        num_tokens += token.chance
        num_own_rows = candidate.num_rows + token.depth
        more_s = costs.attention.estimate(num_own_rows + 1) - costs.attention.estimate(num_own_rows)
        attention_s += candidate.num_context_tokens * more_s
        if candidate.is_drafted and draft is not None:
            num_beside = num_drafted[token.depth]
            draft_s += draft.estimate(num_beside + 1) - (
                draft.estimate(num_beside) if num_beside else 0.0
            )
            num_drafted[token.depth] += 1
            draft_s += 0.0 if token.depth else candidate.catch_up_s
        num_rows = step.num_rows + place
        change_s = _change_s(
            step, num_rows, costs, begins_drafts=bool(num_drafted) and not step.has_drafted
        )
        is_single = token.depth == 0 and candidate.num_rows == 1
        num_several += is_single
        num_own += 1 + is_single
        all_accepted[token.candidate] = token.chance
        repeat_s = _repeat_s(all_accepted, num_tokens - step.num_tokens, costs.several)
        step_s = costs.estimate_step(num_rows, num_several, num_own) + attention_s
        yield _Plan(
            place, num_tokens, step_s + change_s + draft_s + repeat_s, is_drafted=bool(num_drafted)
        )


def _repeat_s(all_accepted: list[float], num_more: float, several: SeveralCosts | None) -> float:
    """Returns the expected seconds of the next step for rows that are computed again.

    `all_come` has the probability that all is accepted by candidate; `num_more` is the expected
    number of accepted tokens.
    """
    if several is None:
        return 0.0
    once_s = several.first_s + several.row_s * (1 + num_more)
    return (1 - prod(all_accepted)) * once_s + sum(
        1 - each for each in all_accepted
    ) * several.each_s


def _change_s(step: Step, num_rows: int, costs: StepCosts, *, begins_drafts: bool) -> float:
    if step.last_num_rows in (None, num_rows):
        return 0.0
    return costs.change_s / _STEPS_OF_DRAFTS if begins_drafts else costs.change_s
