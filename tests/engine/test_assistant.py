"""An assistant changes no output; if it is right, there are fewer steps."""

from typing import Any

import msgspec
import pytest

from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.types.engine_request import ReasoningBudget
from tests.engine.drafting import (
    DEAR,
    FEW_BLOCKS,
    FOR_NOTHING,
    FREE,
    PROMPT,
    check_counts,
    check_preempted_requests,
)
from tests.engine.fake_assistant import FakeAssisted
from tests.engine.requests import make_request, run, run_alone
from tests.engine.test_images import picture


def engine_with(runner: FakeAssisted, *, costs: StepCosts = FREE) -> EngineCore:
    speculation = Speculation(
        prompt_lookup=False, assists=True, costs=costs, draft_costs=FOR_NOTHING
    )
    return EngineCore(runner, speculation=speculation)


def plain_engine(**options: Any) -> EngineCore:
    return EngineCore(FakeAssisted(0.0, **options))


@pytest.mark.parametrize(
    "params", [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "top_k": 9, "seed": 4}]
)
@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_the_output_equals_the_models(share: float, params: dict[str, Any]) -> None:
    expected = run_alone(plain_engine(), make_request(PROMPT, max_tokens=60, **params))[0]
    runner = FakeAssisted(share)
    result = run_alone(engine_with(runner), make_request(PROMPT, max_tokens=60, **params))[0]
    assert result.token_ids == expected.token_ids
    assert runner.prediction.num_poor == 0
    check_counts(result, share)


def test_preempted_requests_draft_again() -> None:
    """Few blocks and many requests, so that some are preempted."""
    runner = FakeAssisted(1.0, **FEW_BLOCKS)
    engine = engine_with(runner)
    check_preempted_requests(engine, plain_engine)
    assert runner.prediction.num_poor == 0


def test_a_prompt_from_the_cache_is_drafted_for_as_well() -> None:
    engine = engine_with(FakeAssisted(1.0))
    first, again = (run_alone(engine, make_request(PROMPT, max_tokens=20))[0] for _ in range(2))
    assert again.token_ids == first.token_ids
    assert again.final.num_cached_tokens == 36
    assert again.final.num_accepted_tokens == first.final.num_accepted_tokens > 10


def test_a_prompt_costs_the_assistant_nothing() -> None:
    runner = FakeAssisted(1.0, max_num_batched_tokens=8)
    run_alone(engine_with(runner, costs=DEAR), make_request(PROMPT, max_tokens=1))
    assert not [batch for batch in runner.prediction.batches if batch.hidden_rows is not None]


def test_choices_are_the_same_as_without_the_assistant() -> None:
    settings: list[dict[str, Any]] = [{"temperature": 1.0, "seed": 5}, {}]
    for params in settings:
        runner = FakeAssisted(0.9)
        several = msgspec.structs.replace(make_request(PROMPT, max_tokens=20, **params), n=3)
        expected, results = (
            run(engine, [several]) for engine in (plain_engine(), engine_with(runner))
        )
        assert {key: each.token_ids for key, each in results.items()} == {
            key: each.token_ids for key, each in expected.items()
        }
        assert all(each.final.num_accepted_tokens > 5 for each in results.values())
        assert runner.prediction.num_poor == 0


def test_a_request_with_images_is_drafted_for_as_well() -> None:
    """The newest token never stands for an image; the cache has the images."""
    image = picture("cat", (3, 12))
    request = msgspec.structs.replace(make_request(PROMPT, max_tokens=20), images=[image])
    runner = FakeAssisted(1.0, num_encoder_parts=1)
    result = run_alone(engine_with(runner), request)[0]
    assert result.token_ids == run_alone(plain_engine(num_encoder_parts=1), request)[0].token_ids
    assert result.final.num_accepted_tokens == result.final.num_proposed_tokens > 10
    assert runner.prediction.num_poor == 0


def test_tokens_that_a_limit_appends_have_no_rows_of_rejected_proposals() -> None:
    """The end of the reasoning is appended after a token for which others had been proposed."""
    budget = ReasoningBudget(
        max_tokens=12,
        end_token_ids=(5, 6, 7, 8),
        starts=(b"<think>",),
        ends=(b"</think>",),
        pieces={},
        is_open=True,
    )
    request = msgspec.structs.replace(make_request(PROMPT, max_tokens=60), reasoning_budget=budget)
    for share in (0.3, 0.7, 1.0):
        runner = FakeAssisted(share)
        result = run_alone(engine_with(runner), request)[0]
        request = msgspec.structs.replace(request, request_id=f"again {share}")
        assert result.token_ids == run_alone(plain_engine(), request)[0].token_ids
        assert result.final.num_proposed_tokens > 0
        assert runner.prediction.num_poor == 0


def test_an_assistant_that_fails_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    runner = FakeAssisted(1.0)
    runner.prediction._model = FakeAssisted(1.0)  # it knows none of the hidden rows
    result = run_alone(engine_with(runner), make_request(PROMPT, max_tokens=20))[0]
    assert (
        result.token_ids
        == run_alone(plain_engine(), make_request(PROMPT, max_tokens=20))[0].token_ids
    )
    assert "the draft source failed and has been disabled" in caplog.text
