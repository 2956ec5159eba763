"""Requests in the background take only the time that other requests leave."""

from collections.abc import Callable

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.scheduling.background import Background
from ouzel.types.engine_request import BACKGROUND_PRIORITY, EngineRequest
from tests.engine.requests import MAX_STEPS, make_request, run, run_alone

PLACES = 4


def make_engine() -> EngineCore:
    return EngineCore(FakeRunner(max_num_seqs=PLACES, num_blocks=200))


def prompt(seed: int, *, max_tokens: int = 12, in_background: bool) -> EngineRequest:
    return make_request(
        [(seed * 7 + place * place) % 97 for place in range(10)],
        max_tokens=max_tokens,
        priority=BACKGROUND_PRIORITY if in_background else 0,
    )


def fill(engine: EngineCore) -> list[EngineRequest]:
    """Lets requests in the background take all places."""
    requests = [prompt(seed, max_tokens=60, in_background=True) for seed in range(PLACES)]
    for request in requests:
        engine.add(request)
    for _ in range(20):
        engine.step()
    return requests


def step_until_token(engine: EngineCore, request_ids: set[str]) -> set[str]:
    """Makes one step and returns the ids of the given requests that got a token."""
    return {
        output.request_id
        for output in engine.step()
        if output.token_ids and output.request_id in request_ids
    }


def test_a_background_request_alone_gets_the_same_tokens_as_any_other() -> None:
    engine = make_engine()
    background = [prompt(seed, in_background=True) for seed in range(9)]

    results = run(engine, background)

    for request, seed in zip(background, range(9), strict=True):
        (alone,) = run_alone(make_engine(), prompt(seed, in_background=False))
        assert results[request.request_id, 0].token_ids == alone.token_ids


def test_new_requests_take_the_places_of_the_background_at_once() -> None:
    engine = make_engine()
    fill(engine)
    others = [prompt(seed, max_tokens=3, in_background=False) for seed in range(20, 22)]

    for request in others:
        engine.add(request)
    wanted = {request.request_id for request in others}
    # Both prompts, of 10 tokens, need two steps of 16 tokens.
    assert step_until_token(engine, wanted) | step_until_token(engine, wanted) == wanted


def test_requests_in_the_background_end_although_others_came_between() -> None:
    engine = make_engine()
    background = fill(engine)
    others = [prompt(seed, max_tokens=9, in_background=False) for seed in range(20, 30)]
    for request in others:
        engine.add(request)
    finished: dict[str, int] = {}
    for step in range(MAX_STEPS):
        for output in engine.step():
            if output.finish_reason is not None:
                finished[output.request_id] = step
        if not engine.has_unfinished():
            break

    assert finished.keys() == {each.request_id for each in (*background, *others)}
    last = max(finished[each.request_id] for each in others)
    assert all(finished[each.request_id] > last for each in background)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def run_steps(background: Background, clock: Clock, num_steps: int) -> float:
    """Runs steps beside others, of 20 ms and 1 ms a background token; returns the part of these."""
    own_s = 0.0
    begin_s = clock.now_s
    for _ in range(num_steps):
        num_tokens = background.num_tokens(has_others=True)
        took_s = 0.02 + 0.001 * num_tokens
        clock.now_s += took_s
        own_s += took_s - 0.02
        background.note_step(
            took_s, num_tokens=num_tokens, num_others_tokens=8, first_token_waits_s=[]
        )
    return own_s / (clock.now_s - begin_s)


def test_beside_others_the_background_gets_a_twentieth_of_the_time() -> None:
    clock = Clock()
    background = Background(512, clock=clock)

    part = run_steps(background, clock, 2000)

    assert part == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("first_s", [0.005, 0.02, 2.0])
def test_an_early_slow_step_of_others_does_not_make_the_background_free(first_s: float) -> None:
    clock = Clock()
    background = Background(512, clock=clock)
    background.note_step(first_s, num_tokens=0, num_others_tokens=8, first_token_waits_s=[])
    assert 0.03 < run_steps(background, clock, 2000) < 0.07


def test_long_steps_of_prompts_do_not_make_the_background_free_beside_decoding() -> None:
    """The average of all steps is far above a step that decodes."""
    clock = Clock()
    background = Background(512, clock=clock)
    own_s = others_s = 0.0
    for step in range(3000):
        num_others = 300 if step % 5 == 0 else 8
        num_tokens = background.num_tokens(has_others=True)
        took_s = 0.001 * (20 + num_others + num_tokens)
        clock.now_s += took_s
        own_s += 0.001 * num_tokens
        others_s += 0.001 * (20 + num_others)
        background.note_step(
            took_s, num_tokens=num_tokens, num_others_tokens=num_others, first_token_waits_s=[]
        )
    assert 0.01 < own_s / (own_s + others_s) < 0.055


@pytest.mark.parametrize(("wait_s", "most_s"), [(0.01, 0.003), (0.5, 0.05), (60.0, 0.1)])
def test_a_step_soon_after_others_is_short_beside_the_wait_for_a_first_token(
    wait_s: float, most_s: float
) -> None:
    clock = Clock()
    background = Background(512, clock=clock)
    background.note_step(0.02, num_tokens=0, num_others_tokens=8, first_token_waits_s=[wait_s])

    took_s = [run_own_step(background, clock, lambda num: 0.0005 * num) for _ in range(60)]

    # A limit that fits is tried a quarter longer, then taken back.
    assert max(took_s[20:]) <= 1.3 * most_s
    assert max(took_s[20:]) >= 0.5 * most_s


def run_own_step(background: Background, clock: Clock, time_s: Callable[[int], float]) -> float:
    num_tokens = background.num_tokens(has_others=False)
    took_s = time_s(num_tokens)
    clock.now_s += took_s
    background.note_step(took_s, num_tokens=num_tokens, num_others_tokens=0, first_token_waits_s=[])
    return took_s


def test_after_a_calm_time_the_background_gets_whole_steps() -> None:
    clock = Clock()
    background = Background(512, clock=clock)
    assert background.num_tokens(has_others=False) == 512
    background.note_step(0.02, num_tokens=0, num_others_tokens=8, first_token_waits_s=[0.02])
    assert background.num_tokens(has_others=False) < 512
    clock.now_s += 11.0
    assert background.num_tokens(has_others=False) == 512
