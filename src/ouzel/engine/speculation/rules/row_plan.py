"""How many guesses a step computes is chosen so that it gives most tokens per second.

A guess is worth its probability, and costs a row; one of a draft model costs a step of that as well. Rows go to the
likeliest guesses, over all sequences, as long as they make the whole faster by what is expected.

A step of another number of rows than the one before costs more. So what was taken last is taken again where little
speaks against it. The way back to no guesses is not charged: else many rows, once taken, would be kept for nothing.
Where drafts begin, the change is charged to several steps, as there are always as many as are asked for.

States of recurrent layers go back where not all guesses come, and what came is computed again with the next step: that
is charged by the probability of it. A step that has such rows is slow, with guesses and without, so that guesses seem
to pay: instead it takes those by which it falls least behind the fastest steps that have nothing to compute again.
Source: Howard, Dynamic Programming and Markov Processes, 1960: maximising an average reward.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod

import msgspec

from ouzel.engine.speculation.rules.step_costs import SeveralCosts, StepCosts

MAX_ROWS = 64  # to sample from, of a step with guesses: 39 MB of logits with Qwen3's vocabulary
MIN_GAIN = 1.03  # below it, noise of the measurement may be all
MIN_GAIN_OF_DRAFTS = 1.05  # where none were made before: what they gain is known less
_STEPS_OF_DRAFTS = 8  # of which the first one pays for the change


class Offer(msgspec.Struct, frozen=True):
    """One sequence could have these guesses, one after the other."""

    chances: tuple[float, ...]  # of each, that it and all before it come true: they do not rise
    num_context_tokens: int  # that a row attends to
    num_rows: int = 1  # of its known tokens
    is_drafted: bool = False  # each costs a step of the draft model, which others may share
    # that the draft model needs before the first, spread over the steps that gain by it
    catch_up_s: float = 0.0


class _Guess(msgspec.Struct, frozen=True):
    chance: float
    depth: int
    offer: int


class Step(msgspec.Struct, frozen=True):
    """What is computed in any case."""

    num_rows: int
    num_tokens: int  # that come of it
    attention_s: float = 0.0  # for what lies in the cache, without guesses
    last_num_rows: int | None = None  # of the step before,
    has_drafted: bool = False  # which had drafts
    num_several: int = 0  # sequences with several rows, and how many these are
    num_rows_of_several: int = 0


class _Plan(msgspec.Struct, frozen=True):
    """The likeliest guesses, so many, are computed."""

    num_guesses: int
    num_tokens: float  # that are expected to come
    seconds: float  # that this is expected to take, with what is computed again
    is_drafted: bool

    @property
    def speed(self) -> float:
        return self.num_tokens / self.seconds


def row_plan(
    offers: Sequence[Offer], step: Step, costs: StepCosts, draft: StepCosts | None = None
) -> list[int]:
    """Returns how many guesses each offer gets."""
    guesses = [
        _Guess(chance, depth, number)
        for number, offer in enumerate(offers)
        for depth, chance in enumerate(offer.chances)
    ]
    guesses.sort(key=lambda guess: (-guess.chance, guess.depth))
    guesses = guesses[: max(0, MAX_ROWS - step.num_tokens)]
    plans = list(_plans(guesses, offers, step, costs, draft))
    best = _fastest(plans, has_drafted=step.has_drafted)
    owing = [offer for offer in offers if offer.num_rows > 1]
    if owing and costs.several is not None:
        settled = [msgspec.structs.replace(offer, num_rows=1) for offer in offers]
        lasting = _fastest(
            _plans(guesses, settled, _settled(step, owing), costs, draft),
            has_drafted=step.has_drafted,
        )
        best = max(plans, key=lambda plan: plan.num_tokens - lasting.speed * plan.seconds)
    taken = Counter(guess.offer for guess in guesses[: best.num_guesses])
    return [taken[number] for number in range(len(offers))]


def _settled(step: Step, owing: list[Offer]) -> Step:
    """Returns the step as it would be if nothing had to be computed again."""
    num_rows = sum(offer.num_rows for offer in owing)
    return msgspec.structs.replace(
        step,
        num_rows=step.num_rows - num_rows + len(owing),
        num_several=step.num_several - len(owing),
        num_rows_of_several=step.num_rows_of_several - num_rows,
    )


def _fastest(plans: Iterable[_Plan], *, has_drafted: bool) -> _Plan:
    """Takes that without guesses first; others have to gain something."""
    plain, *others = plans
    best, least = plain, MIN_GAIN * plain.speed
    least_with_drafts = least if has_drafted else MIN_GAIN_OF_DRAFTS * plain.speed
    for plan in others:
        if plan.speed > max(least_with_drafts if plan.is_drafted else least, best.speed):
            best = plan
    return best


def _plans(
    guesses: list[_Guess],
    offers: Sequence[Offer],
    step: Step,
    costs: StepCosts,
    draft: StepCosts | None,
) -> Iterator[_Plan]:
    """Gives that without guesses, and one with each guess more."""
    num_several, num_own = step.num_several, step.num_rows_of_several
    num_tokens, attention_s, draft_s = float(step.num_tokens), step.attention_s, 0.0
    yield _Plan(
        0,
        num_tokens,
        costs.of_step(step.num_rows, num_several, num_own) + attention_s,
        is_drafted=False,
    )
    num_drafted = Counter[int]()  # sequences, by depth
    all_come = [1.0] * len(offers)  # the probability that all guesses of an offer so far do
    for place, guess in enumerate(guesses, start=1):
        offer = offers[guess.offer]
        num_tokens += guess.chance
        num_own_rows = offer.num_rows + guess.depth
        more_s = costs.attention.of(num_own_rows + 1) - costs.attention.of(num_own_rows)
        attention_s += offer.num_context_tokens * more_s
        if offer.is_drafted and draft is not None:
            num_beside = num_drafted[guess.depth]
            draft_s += draft.of(num_beside + 1) - (draft.of(num_beside) if num_beside else 0.0)
            num_drafted[guess.depth] += 1
            draft_s += 0.0 if guess.depth else offer.catch_up_s
        num_rows = step.num_rows + place
        change_s = _change_s(
            step, num_rows, costs, begins_drafts=bool(num_drafted) and not step.has_drafted
        )
        is_single = guess.depth == 0 and offer.num_rows == 1
        num_several += is_single
        num_own += 1 + is_single
        all_come[guess.offer] = guess.chance
        again_s = _again_s(all_come, num_tokens - step.num_tokens, costs.several)
        step_s = costs.of_step(num_rows, num_several, num_own) + attention_s
        yield _Plan(
            place, num_tokens, step_s + change_s + draft_s + again_s, is_drafted=bool(num_drafted)
        )


def _again_s(all_come: list[float], num_more: float, several: SeveralCosts | None) -> float:
    """Returns the seconds more that the next step is expected to take for what it computes again.

    `all_come` are the probabilities of the sequences, `num_more` the guesses that are expected to come.
    """
    if several is None:
        return 0.0
    once_s = several.first_s + several.row_s * (1 + num_more)
    return (1 - prod(all_come)) * once_s + sum(1 - each for each in all_come) * several.each_s


def _change_s(step: Step, num_rows: int, costs: StepCosts, *, begins_drafts: bool) -> float:
    if step.last_num_rows in (None, num_rows):
        return 0.0
    return costs.change_s / _STEPS_OF_DRAFTS if begins_drafts else costs.change_s
