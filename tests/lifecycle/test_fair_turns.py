"""No request waits much longer than in strict order of arrival, and memory keeps its limit.

Requests at random ask for four models of which two fit. The fair wait is the wait in the
server of `benchmarks.fair_wait`.
"""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from math import inf

import pytest

from benchmarks.fair_wait import Arrival, compute_fair_waits
from ouzel.lifecycle.models import ManagedModel
from ouzel.lifecycle.residents import Residents
from ouzel.lifecycle.turns import Limits
from tests.lifecycle.movers import FakeMover, run_in_virtual_time

LOAD_S = 2.0
NUM_FIT = 2
SIZES = dict.fromkeys("abcd", 5)
LIMITS = Limits(max_bytes=10)


@dataclass(frozen=True)
class Traffic:
    """`models` has each model as often as requests ask for it."""

    num_requests: int
    mean_pause_s: float
    models: str


TRAFFIC = {
    "calm": Traffic(100, 1.0, "aaabbccd"),
    "two models are never idle": Traffic(400, 0.1, "aaaaaaaaaabbbbbbbbbbcd"),
}


def draw_requests(seed: int, traffic: Traffic) -> list[Arrival]:
    numbers = random.Random(seed)
    arrives_s, asked = 0.0, []
    for _ in range(traffic.num_requests):
        arrives_s += numbers.expovariate(1 / traffic.mean_pause_s)
        leaves_s = arrives_s + numbers.uniform(0, 10) if numbers.random() < 0.1 else inf
        model = numbers.choice(traffic.models)
        asked.append(Arrival(model, arrives_s, numbers.uniform(0.5, 3), leaves_s))
    return asked


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("seed", range(10))
def test_waits_are_within_twice_the_fair_wait(seed: int, traffic: str) -> None:
    asked = draw_requests(seed, TRAFFIC[traffic])
    mover = FakeMover(SIZES, load_s=LOAD_S)
    waits: dict[Arrival, float] = {}

    async def main() -> None:
        residents = Residents(mover, LIMITS, max_waiting=1000)
        for name in SIZES:
            residents.add(ManagedModel((name,), keep_alive_s=30.0))

        async def send(each: Arrival) -> None:
            await asyncio.sleep(each.arrives_s)
            async with residents.use(each.model):
                waits[each] = asyncio.get_running_loop().time() - each.arrives_s
                await asyncio.sleep(each.open_s)

        async def send_or_leave(each: Arrival) -> None:
            """The client leaves while it waits, or while it is served."""
            with suppress(TimeoutError):
                await asyncio.wait_for(send(each), None if each.leaves_s == inf else each.leaves_s)

        await asyncio.gather(*map(send_or_leave, asked))
        assert residents.num_waiting == 0
        assert all(model.num_open == 0 for model in residents)
        await asyncio.sleep(100)
        assert mover.in_memory == set()
        await residents.close()

    run_in_virtual_time(main)

    assert mover.most_bytes <= (LIMITS.max_bytes or 0)
    fair_waits = compute_fair_waits(asked, dict.fromkeys(SIZES, LOAD_S), NUM_FIT)
    longest_turn_s = LOAD_S + max(each.open_s for each in asked)
    total_s = total_fair_s = 0.0
    for each, fair_s in zip(asked, fair_waits, strict=True):
        if each.leaves_s == inf and fair_s is not None:
            assert waits[each] <= 2 * fair_s + longest_turn_s, each
            total_s += waits[each]
            total_fair_s += fair_s
    assert total_s <= total_fair_s
