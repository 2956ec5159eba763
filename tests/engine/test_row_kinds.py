"""A deterministic engine computes each row with rows of its own kind for all requests."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.state.sequence import LEAST_TOGETHER
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from tests.engine.drafting import FREE
from tests.engine.requests import make_request, run

FURTHER = pytest.mark.release("further sizes of rows of one kind")


def deterministic_runner(**sizes: Any) -> FakeRunner:  # sizes of FakeRunner
    runner = FakeRunner(**sizes)
    runner.info = msgspec.structs.replace(runner.info, separates_rows=True)
    return runner


def prompts(length: int) -> Iterable[list[int]]:
    """Yields prompts of which some begin alike."""
    for number in range(4):
        yield [(5 * each + (number if each > 9 else number // 2)) % 89 for each in range(length)]


def make_requests(length: int) -> list[EngineRequest]:
    ways: list[dict[str, Any]] = [
        {},
        {"temperature": 1.0, "seed": -(2**63), "num_logprobs": 1},
        {"n": 3, "temperature": 1.0, "seed": 2**63 - 1},
        {"n": 2, "beam_search": BeamSearchParams(width=3)},
        {"num_prompt_logprobs": 0},
    ]
    return [make_request(each, max_tokens=11, **way) for way in ways for each in prompts(length)]


def find_wrong_rows(batches: list[ForwardBatch], num_prompt_tokens: int) -> list[tuple[int, int]]:
    """Returns past and length of each subsequence that breaks a rule of `row_kinds`.

    All prompts have `num_prompt_tokens` tokens.
    """
    lens = [
        (int(past), int(length))
        for batch in batches
        for past, length in zip(batch.past_lens, np.diff(batch.subsequence_begins), strict=True)
    ]
    return [
        (past, length)
        for past, length in lens
        if (length != 1)
        if past >= num_prompt_tokens
        or num_prompt_tokens < LEAST_TOGETHER
        or past + length > num_prompt_tokens
    ] + [
        (past, length)
        for past, length in lens
        if length == 1 and past < num_prompt_tokens and num_prompt_tokens >= LEAST_TOGETHER
    ]


@pytest.mark.parametrize("num_blocks", [20, pytest.param(64, marks=FURTHER)])
@pytest.mark.parametrize("max_num_batched_tokens", [6, 7, pytest.param(16, marks=FURTHER), 100])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 10, 33])
def test_rows_have_company_of_their_kind(
    length: int, max_num_batched_tokens: int, num_blocks: int
) -> None:
    runner = deterministic_runner(
        num_blocks=num_blocks, max_num_seqs=6, max_num_batched_tokens=max_num_batched_tokens
    )
    engine = EngineCore(runner)

    run(engine, make_requests(length))

    assert find_wrong_rows(runner.batches, length) == []


@pytest.mark.parametrize("length", [1, 2, 9, 33])
def test_guesses_have_rows_of_their_own(length: int) -> None:
    runner = deterministic_runner(max_num_batched_tokens=40)
    [expected, *_] = run(EngineCore(runner), [make_request(range(length), max_tokens=30)]).values()
    predicted = SpeculationParams(predicted_token_ids=expected.token_ids)
    request = msgspec.structs.replace(
        make_request(range(length), max_tokens=30), speculation=predicted
    )
    engine = EngineCore(runner, speculation=Speculation(costs=FREE))

    [guessed, *_] = run(engine, [request]).values()

    assert guessed.token_ids == expected.token_ids
    assert engine.stats().num_accepted_tokens > 10
    assert find_wrong_rows(runner.batches, length) == []
