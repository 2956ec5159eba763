"""No request waits much longer than in strict order of arrival, and memory keeps its limit.

A hundred requests at random ask for four models of which two fit. The fair wait is the wait in a
server that begins requests strictly in the order of their arrival: the next request begins when the
one before has begun and its own model is in memory; a model makes room, the least recently used
first, when its requests have ended.
"""

import asyncio
import random
from dataclasses import dataclass

import pytest

from ouzel.lifecycle.models import ManagedModel
from ouzel.lifecycle.residents import Residents
from ouzel.lifecycle.turns import Limits
from tests.lifecycle.movers import FakeMover, run_in_virtual_time

LOAD_S = 2.0
NUM_FIT = 2
SIZES = dict.fromkeys("abcd", 5)
LIMITS = Limits(max_bytes=10)


@dataclass(frozen=True)
class Asked:
    arrival_s: float
    model: str
    takes_s: float
    leaves_after_s: float | None  # the client leaves, whether it waits or is served


def draw_requests(seed: int) -> list[Asked]:
    numbers = random.Random(seed)
    arrival_s, asked = 0.0, []
    for _ in range(100):
        arrival_s += numbers.expovariate(1.0)
        leaves_after_s = numbers.uniform(0, 10) if numbers.random() < 0.1 else None
        model = numbers.choice("aaabbccd")
        asked.append(Asked(arrival_s, model, numbers.uniform(0.5, 3), leaves_after_s))
    return asked


def compute_fair_waits(asked: list[Asked]) -> list[float]:
    """Returns the waits if requests begin strictly in the order of their arrival."""
    ready_s: dict[str, float] = {}  # when each model in memory was loaded
    used_s: dict[str, float] = {}  # when its last request ends
    begun_s, free_s, waits = 0.0, 0.0, []
    for each in asked:
        begin_s = max(each.arrival_s, begun_s)
        if each.model not in ready_s:
            load_s = max(begin_s, free_s)
            if len(ready_s) == NUM_FIT:
                oldest = min(ready_s, key=lambda name: used_s[name])
                load_s = max(load_s, used_s.pop(oldest))
                del ready_s[oldest]
            ready_s[each.model] = free_s = load_s + LOAD_S
            used_s[each.model] = free_s
        begin_s = begun_s = max(begin_s, ready_s[each.model])
        used_s[each.model] = max(used_s[each.model], begin_s + each.takes_s)
        waits.append(begin_s - each.arrival_s)
    return waits


@pytest.mark.parametrize("seed", range(20))
def test_waits_are_within_twice_the_fair_wait(seed: int) -> None:
    asked = draw_requests(seed)
    mover = FakeMover(SIZES, load_s=LOAD_S)
    waits: dict[Asked, float] = {}

    async def main() -> None:
        residents = Residents(mover, LIMITS, max_waiting=1000)
        for name in SIZES:
            residents.add(ManagedModel((name,), keep_alive_s=30.0))

        async def send(each: Asked) -> None:
            await asyncio.sleep(each.arrival_s)
            async with residents.use(each.model):
                waits[each] = asyncio.get_running_loop().time() - each.arrival_s
                await asyncio.sleep(each.takes_s)

        async def send_or_leave(each: Asked) -> None:
            leaves_s = each.leaves_after_s
            limit_s = None if leaves_s is None else each.arrival_s + leaves_s
            try:
                await asyncio.wait_for(send(each), limit_s)
            except TimeoutError:
                return

        await asyncio.gather(*map(send_or_leave, asked))
        assert residents.num_waiting == 0
        assert all(model.num_open == 0 for model in residents)
        await asyncio.sleep(100)
        assert mover.in_memory == set()
        await residents.close()

    run_in_virtual_time(main)

    assert mover.most_bytes <= (LIMITS.max_bytes or 0)
    fair_waits = dict(zip(asked, compute_fair_waits(asked), strict=True))
    longest_turn_s = LOAD_S + max(each.takes_s for each in asked)
    for each in asked:
        if each.leaves_after_s is None:
            assert waits[each] <= 2 * fair_waits[each] + longest_turn_s, each
    stayed = [each for each in asked if each.leaves_after_s is None]
    assert sum(waits[each] for each in stayed) <= sum(fair_waits[each] for each in stayed)
