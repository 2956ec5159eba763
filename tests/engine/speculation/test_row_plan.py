from itertools import product
from random import Random

import msgspec
import pytest

from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.drafting import FIRST_CHANCES, Drafting
from ouzel.engine.speculation.rules.row_plan import (
    MAX_ROWS,
    MIN_GAIN,
    RowCandidate,
    Step,
    plan_rows,
)
from ouzel.engine.speculation.rules.step_costs import (
    AttentionCosts,
    SeveralCosts,
    StepCosts,
    make_rising,
)

ATTENTION = AttentionCosts(first_s=1e-7, apart_s=1e-7, whole_s=4e-7, whole_row_s=1e-8)
CPU = StepCosts((1, 2, 4, 8, 16, 32), (0.030, 0.031, 0.033, 0.041, 0.055, 0.090), ATTENTION)
LINEAR = StepCosts((1, 2), (1.0, 2.0))


def falling_chances(chance: float, number: int) -> tuple[float, ...]:
    return tuple(chance**depth for depth in range(1, number + 1))


def step(num_sequences: int, num_context_tokens: int = 0) -> Step:
    return Step(
        num_rows=num_sequences,
        num_tokens=num_sequences,
        attention_s=num_context_tokens * ATTENTION.estimate(1),
    )


def speed(offers: list[RowCandidate], numbers: tuple[int, ...], base: Step) -> float:
    num_tokens = base.num_tokens + sum(
        sum(offer.chances[:num]) for offer, num in zip(offers, numbers, strict=True)
    )
    attention_s = sum(
        offer.num_context_tokens * ATTENTION.estimate(1 + num)
        for offer, num in zip(offers, numbers, strict=True)
    )
    return num_tokens / CPU.estimate(base.num_rows + sum(numbers), attention_s)


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_is_the_best_of_all(seed: int) -> None:
    random = Random(seed)
    offers = [RowCandidate(falling_chances(random.random(), 5), 500) for _ in range(3)]
    base = step(3, 1500)
    best = max(product(range(6), repeat=3), key=lambda numbers: speed(offers, numbers, base))
    plan = tuple(plan_rows(offers, base, CPU))
    if speed(offers, best, base) > MIN_GAIN * speed(offers, (0, 0, 0), base):
        assert speed(offers, plan, base) == pytest.approx(speed(offers, best, base))
    else:
        assert plan == (0, 0, 0)


def test_nothing_is_proposed_if_rows_cost_as_much_as_they_give() -> None:
    assert plan_rows([RowCandidate(falling_chances(0.99, 8), 10)], step(1), LINEAR) == [0]


def test_sure_guesses_take_many_rows_and_poor_ones_none() -> None:
    sure = RowCandidate(falling_chances(0.98, 31), 100)
    poor = RowCandidate(falling_chances(0.02, 31), 100)
    assert plan_rows([sure], step(1), CPU)[0] > 12
    assert plan_rows([poor], step(1), CPU) == [0]
    assert plan_rows([sure, poor], step(2), CPU)[1] == 0


def test_long_contexts_make_rows_dear() -> None:
    near, far = (
        plan_rows([RowCandidate(falling_chances(0.3, 31), length)], step(1, length), CPU)[0]
        for length in (100, 100_000)
    )
    assert near > far == 0


def test_rows_of_a_sequence_part_while_that_costs_less() -> None:
    assert [ATTENTION.is_apart(num) for num in (1, 4, 5, 31)] == [True, True, False, False]
    assert ATTENTION.estimate(4) == pytest.approx(4e-7)
    assert ATTENTION.estimate(31) == pytest.approx(7.1e-7)
    assert AttentionCosts(first_s=1.0, apart_s=1.0).is_apart(64), (
        "who has not measured them knows nothing of whole ones"
    )


def test_the_first_row_of_a_sequence_costs_more_than_further_ones() -> None:
    attention = AttentionCosts(first_s=6e-6, apart_s=2e-6)
    assert [attention.estimate(num) for num in (1, 2, 4)] == pytest.approx([6e-6, 8e-6, 12e-6])


def test_as_many_rows_as_in_the_step_before_are_preferred() -> None:
    offer = RowCandidate(falling_chances(0.8, 31), 10)
    changing = msgspec.structs.replace(CPU, change_s=0.005)
    [alone] = plan_rows([offer], step(1), CPU)
    for last in (alone, alone + 2):
        before = msgspec.structs.replace(step(1), last_num_rows=last)
        assert plan_rows([offer], before, changing) == [last - 1]
    assert plan_rows([offer], msgspec.structs.replace(step(1), last_num_rows=31), changing) != [30]


def test_rows_are_given_up_when_guesses_are_poor() -> None:
    costs = msgspec.structs.replace(CPU, change_s=1.0)
    before = msgspec.structs.replace(step(1), last_num_rows=5)
    assert plan_rows([RowCandidate(falling_chances(0.01, 31), 10)], before, costs) == [0]


def test_a_step_has_so_many_rows_at_most() -> None:
    free = StepCosts((1, 1000), (1.0, 1.001))
    plan = plan_rows([RowCandidate(falling_chances(0.999, 31), 1)] * 10, step(10), free)
    assert sum(plan) == MAX_ROWS - 10


def test_a_draft_pays_for_its_own_steps() -> None:
    offer = RowCandidate(falling_chances(0.8, 5), 100, is_drafted=True)
    cheap, dear = StepCosts((1, 2), (0.002, 0.002)), StepCosts((1, 2), (0.028, 0.028))
    assert plan_rows([offer], step(1), CPU, cheap)[0] >= 3
    assert plan_rows([offer], step(1), CPU, dear) == [0]


def test_costs_are_interpolated_between_measurements_and_beyond() -> None:
    assert CPU.estimate(1) == 0.030
    assert CPU.estimate(12) == pytest.approx(0.048)
    assert CPU.estimate(48) == pytest.approx(0.125)
    assert CPU.estimate(1, 0.0001) == pytest.approx(0.0301)
    assert make_rising([3.0, 2.0, 2.5, 9.0, 8.0]) == [2.0, 2.0, 2.5, 8.0, 8.0]


def test_wrong_costs_are_corrected() -> None:
    costs = CPU
    for _ in range(50):
        costs = costs.correct(8, 0.036 / costs.estimate(8))
        costs = costs.correct(6, 0.035 / costs.estimate(6))
    assert costs.estimate(8) == pytest.approx(0.036)
    assert costs.estimate(6) == pytest.approx(0.035)
    assert costs.estimate(1) == CPU.estimate(1)
    assert costs.estimate(32) == CPU.estimate(32)
    assert CPU.correct(64, 1.1).estimate(32) == pytest.approx(0.099)


DRAFT = StepCosts((1, 32), (0.003, 0.009))


def test_drafts_begin_where_they_gain_more_than_it_takes_to_go_on() -> None:
    """The gain of drafts with this chance is between 3 and 5 %."""
    offer = RowCandidate(falling_chances(0.18, 5), 10, is_drafted=True)
    before, within = (msgspec.structs.replace(step(1), has_drafted=each) for each in (False, True))
    assert plan_rows([offer], before, CPU, DRAFT) == [0]
    assert plan_rows([offer], within, CPU, DRAFT)[0] > 0
    assert (
        plan_rows([RowCandidate(falling_chances(0.6, 5), 10, is_drafted=True)], before, CPU, DRAFT)[
            0
        ]
        > 0
    )


def test_drafts_that_begin_pay_for_the_change_over_several_steps() -> None:
    changing = msgspec.structs.replace(CPU, change_s=0.08)
    before = msgspec.structs.replace(step(1), last_num_rows=1)
    assert plan_rows([RowCandidate(falling_chances(0.7, 5), 10)], before, changing) == [0]
    assert (
        plan_rows(
            [RowCandidate(falling_chances(0.7, 5), 10, is_drafted=True)], before, changing, DRAFT
        )[0]
        > 0
    )


def test_a_text_that_the_draft_model_lacks_is_an_expense() -> None:
    drafting = Drafting(AcceptanceRates(FIRST_CHANCES), num_cached_tokens=100)
    lacking = drafting.catch_up_s(4100, num_left=1000, costs=DRAFT)
    assert lacking == pytest.approx(
        10 * drafting.catch_up_s(500, num_left=1000, costs=DRAFT), rel=0.01
    )
    assert drafting.catch_up_s(101, num_left=1000, costs=DRAFT) == 0.0
    assert drafting.catch_up_s(4100, num_left=12, costs=DRAFT) > 10 * lacking
    offer = RowCandidate(falling_chances(0.6, 5), 10, is_drafted=True)
    assert plan_rows([offer], step(1), CPU, DRAFT)[0] > 0
    assert plan_rows([msgspec.structs.replace(offer, catch_up_s=0.05)], step(1), CPU, DRAFT) == [0]


def test_repeated_computation_is_an_expense() -> None:
    """Single rows of this model are cheap; several rows of one sequence are not."""
    several = SeveralCosts(first_s=0.012, each_s=0.004, row_s=0.001)
    costs = StepCosts((1, 2, 8), (0.026, 0.030, 0.050), several=several)
    assert costs.estimate_step(4, 1, 4) == pytest.approx(0.022 + 0.012 + 0.004 + 4 * 0.001)
    assert costs.estimate_step(5, 1, 4) == pytest.approx(0.026 + 0.012 + 0.004 + 4 * 0.001)
    draft = StepCosts((1, 2), (0.005, 0.005))
    for chance, pays in ((0.97, True), (0.7, False)):
        offer = RowCandidate(falling_chances(chance, 5), 10, is_drafted=True)
        assert (plan_rows([offer], step(1), costs, draft)[0] > 0) is pays
    others = StepCosts((1, 2, 8), (0.026, 0.042, 0.048))
    assert (
        plan_rows(
            [RowCandidate(falling_chances(0.7, 5), 10, is_drafted=True)], step(1), others, draft
        )[0]
        > 0
    )


def test_each_sequence_with_several_rows_is_an_expense() -> None:
    """With eight streams, proposals for all cost more than they give; for one stream they pay."""
    costs = StepCosts(
        (1, 8), (0.026, 0.050), several=SeveralCosts(first_s=0.001, each_s=0.03, row_s=0.0001)
    )
    assert plan_rows([RowCandidate(falling_chances(0.9, 5), 10)], step(1), costs)[0] > 0
    assert plan_rows([RowCandidate(falling_chances(0.4, 5), 10)] * 8, step(8), costs) == [0] * 8


def test_sequences_that_compute_again_do_not_go_on_proposing_for_ever() -> None:
    """Proposals make steps with such rows faster; steps without such rows are fastest."""
    seconds = (0.028, 0.031, 0.038, 0.054, 0.089, 0.158)
    several = SeveralCosts(first_s=0.001, each_s=0.014, row_s=0.001)
    costs = StepCosts((1, 2, 4, 8, 16, 32), seconds, several=several)
    draft = StepCosts((1, 8), (0.006, 0.008))
    offers = [
        RowCandidate(falling_chances(0.9, 5), 10, num_rows=4 if number < 3 else 1, is_drafted=True)
        for number in range(8)
    ]
    base = Step(num_rows=17, num_tokens=8, num_several=3, num_rows_of_several=12, has_drafted=True)
    assert plan_rows(offers, base, costs, draft)[3:] == [0] * 5
    alone = Step(num_rows=4, num_tokens=1, num_several=1, num_rows_of_several=4, has_drafted=True)
    assert plan_rows(offers[:1], alone, costs, draft)[0] > 0
