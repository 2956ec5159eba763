from itertools import product
from random import Random

import pytest

from ouzel.engine.speculation.row_plan import MAX_ROWS, MIN_GAIN, Offer, Step, row_plan
from ouzel.engine.speculation.step_costs import StepCosts, rising

CPU = StepCosts((1, 2, 4, 8, 16, 32), (0.030, 0.031, 0.033, 0.041, 0.055, 0.090), 1e-7)
LINEAR = StepCosts((1, 2), (1.0, 2.0))


def falling(chance: float, number: int) -> tuple[float, ...]:
    return tuple(chance**depth for depth in range(1, number + 1))


def step(num_sequences: int, num_context_tokens: int = 0) -> Step:
    return Step(num_rows=num_sequences, num_tokens=num_sequences, num_context_tokens=num_context_tokens)


def speed(offers: list[Offer], numbers: tuple[int, ...], base: Step) -> float:
    num_tokens = base.num_tokens + sum(sum(offer.chances[:num]) for offer, num in zip(offers, numbers, strict=True))
    context = base.num_context_tokens + sum(
        offer.num_context_tokens * num for offer, num in zip(offers, numbers, strict=True)
    )
    return num_tokens / CPU.of(base.num_rows + sum(numbers), context)


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_is_the_best_of_all(seed: int) -> None:
    random = Random(seed)
    offers = [Offer(falling(random.random(), 5), 500) for _ in range(3)]
    base = step(3, 1500)
    best = max(product(range(6), repeat=3), key=lambda numbers: speed(offers, numbers, base))
    plan = tuple(row_plan(offers, base, CPU))
    if speed(offers, best, base) > MIN_GAIN * speed(offers, (0, 0, 0), base):
        assert speed(offers, plan, base) == pytest.approx(speed(offers, best, base))
    else:
        assert plan == (0, 0, 0)


def test_nothing_is_guessed_where_rows_cost_what_they_give() -> None:
    assert row_plan([Offer(falling(0.99, 8), 10)], step(1), LINEAR) == [0]


def test_sure_guesses_take_many_rows_and_poor_ones_none() -> None:
    sure, poor = Offer(falling(0.98, 31), 100), Offer(falling(0.02, 31), 100)
    assert row_plan([sure], step(1), CPU)[0] > 12
    assert row_plan([poor], step(1), CPU) == [0]
    assert row_plan([sure, poor], step(2), CPU)[1] == 0


def test_long_contexts_make_rows_dear() -> None:
    near, far = (row_plan([Offer(falling(0.7, 31), length)], step(1, length), CPU)[0] for length in (100, 100_000))
    assert near > far


def test_a_step_has_so_many_rows_at_most() -> None:
    free = StepCosts((1, 1000), (1.0, 1.001))
    plan = row_plan([Offer(falling(0.999, 31), 1)] * 10, step(10), free)
    assert sum(plan) == MAX_ROWS - 10


def test_a_draft_pays_for_its_own_steps() -> None:
    offer = Offer(falling(0.8, 5), 100, is_drafted=True)
    cheap, dear = StepCosts((1, 2), (0.002, 0.002)), StepCosts((1, 2), (0.028, 0.028))
    assert row_plan([offer], step(1), CPU, cheap)[0] >= 3
    assert row_plan([offer], step(1), CPU, dear) == [0]


def test_costs_lie_between_and_beyond_those_measured() -> None:
    assert CPU.of(1) == 0.030
    assert CPU.of(12) == pytest.approx(0.048)
    assert CPU.of(48) == pytest.approx(0.125)
    assert CPU.of(1, 1000) == pytest.approx(0.0301)
    assert rising([3.0, 2.0, 2.5, 9.0, 8.0]) == [2.0, 2.0, 2.5, 8.0, 8.0]


def test_costs_are_corrected_where_they_were_wrong() -> None:
    costs = CPU
    for _ in range(50):
        costs = costs.corrected(8, 0.036 / costs.of(8))
        costs = costs.corrected(6, 0.035 / costs.of(6))
    assert costs.of(8) == pytest.approx(0.036)
    assert costs.of(6) == pytest.approx(0.035)
    assert costs.of(1) == CPU.of(1)
    assert costs.of(32) == CPU.of(32)
    assert CPU.corrected(64, 1.1).of(32) == pytest.approx(0.099)
