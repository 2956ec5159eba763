"""A prediction layer changes no output; if it is right, there are fewer steps."""

from typing import Any

import msgspec
import numpy as np
import pytest

from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.prediction import Entries, PredictionLayer
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.engine.state.sequence import Sequence
from ouzel.types.engine_request import ReasoningBudget, SpeculationParams
from tests.engine.drafting import (
    DEAR,
    FEW_BLOCKS,
    FOR_NOTHING,
    FREE,
    PROMPT,
    check_counts,
    check_preempted_requests,
)
from tests.engine.fake_prediction import FakePredictor
from tests.engine.requests import make_request, run, run_alone
from tests.engine.test_images import picture

ROOM = {"num_blocks": 400, "max_model_len": 1200, "max_num_batched_tokens": 64}


def engine_with(
    runner: FakePredictor, *, costs: StepCosts = FREE, reads_images: bool = True
) -> EngineCore:
    speculation = Speculation(
        prompt_lookup=False,
        predicts=True,
        reads_images=reads_images,
        costs=costs,
        draft_costs=FOR_NOTHING,
    )
    return EngineCore(runner, speculation=speculation)


def plain_engine(**options: Any) -> EngineCore:
    return EngineCore(FakePredictor(0.0, **options))


@pytest.mark.parametrize("num_kept", [None, 8])
@pytest.mark.parametrize(
    "params", [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "top_k": 9, "seed": 4}]
)
@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_the_output_equals_the_models(
    share: float, params: dict[str, Any], num_kept: int | None
) -> None:
    expected = run_alone(plain_engine(), make_request(PROMPT, max_tokens=60, **params))[0]
    runner = FakePredictor(share, num_kept_states=num_kept)
    result = run_alone(engine_with(runner), make_request(PROMPT, max_tokens=60, **params))[0]
    assert result.token_ids == expected.token_ids
    assert runner.prediction.num_poor == 0
    check_counts(result, share)


@pytest.mark.parametrize("length", [900, *range(254, 262)])
def test_entries_of_a_long_prompt_are_made_as_it_is_computed(length: int) -> None:
    runner = FakePredictor(1.0, **ROOM)
    prompt = [(11 * i) % 97 for i in range(length)]
    result = run_alone(engine_with(runner), make_request(prompt, max_tokens=40))[0]
    assert (
        result.token_ids
        == run_alone(plain_engine(**ROOM), make_request(prompt, max_tokens=40))[0].token_ids
    )
    assert result.final.num_accepted_tokens == result.final.num_proposed_tokens > 25
    assert max(batch.token_ids.size for batch in runner.prediction.batches) <= 256 + 64
    assert runner.prediction.num_poor == 0


def test_entries_are_made_even_if_drafts_do_not_pay() -> None:
    """Later drafts may attend to the entries."""
    runner = FakePredictor(0.0, **ROOM)
    run_alone(engine_with(runner, costs=DEAR), make_request(PROMPT, max_tokens=600))
    tokens = np.concatenate([batch.positions for batch in runner.prediction.batches])
    assert set(tokens.tolist()) >= set(range(256))
    assert runner.prediction.num_poor == 0


def test_entries_change_hands_with_their_blocks() -> None:
    """Few blocks and many requests, so that some are preempted."""
    engine = engine_with(FakePredictor(1.0, **FEW_BLOCKS))
    check_preempted_requests(engine, plain_engine)


def test_a_prompt_from_the_cache_is_drafted_for_as_well() -> None:
    engine = engine_with(FakePredictor(1.0))
    first, again = (run_alone(engine, make_request(PROMPT, max_tokens=20))[0] for _ in range(2))
    assert again.token_ids == first.token_ids
    assert again.final.num_cached_tokens == 36
    assert again.final.num_accepted_tokens == first.final.num_accepted_tokens > 10


@pytest.mark.parametrize("chunk", [16, 5, 1])
def test_entries_of_image_tokens_have_the_features(chunk: int) -> None:
    """The fake layer notices an entry without its features: the drafts would be wrong."""
    options: dict[str, Any] = {
        "num_encoder_parts": 1,
        "max_num_batched_tokens": chunk,
        "max_num_seqs": 1,
    }
    runner = FakePredictor(1.0, **options)
    engine = engine_with(runner)
    for pixels in ("cat", "cat", "dog"):
        image = picture(pixels, (3, 12), (20, 4))
        request = msgspec.structs.replace(make_request(PROMPT, max_tokens=20), images=[image])
        result = run_alone(engine, request)[0]
        alone = run_alone(plain_engine(**options), request)[0]
        assert result.token_ids == alone.token_ids
        assert result.final.num_accepted_tokens == result.final.num_proposed_tokens > 10
    assert runner.prediction.num_poor == 0


def test_a_layer_that_reads_no_features_drafts_for_requests_without_images_only() -> None:
    runner = FakePredictor(1.0, num_encoder_parts=1)
    engine = engine_with(runner, reads_images=False)
    plain = make_request(PROMPT, max_tokens=20)
    seeing = msgspec.structs.replace(plain, images=[picture("cat", (3, 12), (20, 4))])
    assert run_alone(engine, seeing)[0].final.num_proposed_tokens == 0
    entries = [each for each in runner.prediction.batches if each.hidden_rows is not None]
    assert [batch.positions.tolist() for batch in entries] == [[0, 1]]
    assert run_alone(engine, plain)[0].final.num_proposed_tokens > 10


@pytest.mark.parametrize("chunk", [64, 5, 1])
@pytest.mark.parametrize("begin", [41, 37, 2, 0])
def test_a_layer_that_reads_no_features_makes_the_entries_before_the_first_image(
    begin: int, chunk: int
) -> None:
    """Blocks before the image have the same keys as the blocks of a request without images."""
    runner = FakePredictor(1.0, num_encoder_parts=1, max_num_batched_tokens=chunk, max_num_seqs=1)
    engine = engine_with(runner, reads_images=False)
    prompt = [*PROMPT, *range(10)]
    plain = make_request(prompt, max_tokens=20)
    images = [picture("cat", (begin, 2), grid=(1, 1, 2)), picture("dog", (44, 1), grid=(1, 1, 1))]
    seeing = msgspec.structs.replace(make_request(prompt, max_tokens=20), images=images)
    assert run_alone(engine, seeing)[0].final.num_proposed_tokens == 0
    result = run_alone(engine, plain)[0]
    block_size = engine.info.block_size
    assert result.final.num_cached_tokens == begin // block_size * block_size
    assert result.final.num_accepted_tokens == result.final.num_proposed_tokens > 10
    assert runner.prediction.num_poor == 0


def test_entries_have_the_positions_of_their_own_tokens() -> None:
    image = picture("cat", (3, 12), grid=(1, 3, 4))
    runner = FakePredictor(1.0, num_encoder_parts=1)
    request = msgspec.structs.replace(make_request(PROMPT, max_tokens=20), images=[image])
    [result] = run_alone(engine_with(runner), request)
    assert result.final.num_proposed_tokens > 0
    positions = PromptImages([image], len(PROMPT)).positions(0, 60)
    assert positions is not None
    places: set[int] = set()
    entries = [batch for batch in runner.prediction.batches if batch.hidden_rows is not None]
    for batch in entries:
        first, length = int(batch.past_lens[0]), len(batch.token_ids)
        assert np.array_equal(batch.positions, positions[:, first : first + length])
        places |= set(range(first, first + length))
    assert places >= set(range(len(PROMPT) + 10))


def test_choices_are_the_same_as_without_the_layer() -> None:
    settings: list[dict[str, Any]] = [{"temperature": 1.0, "seed": 5}, {}]
    for params in settings:
        runner = FakePredictor(0.9)
        several = msgspec.structs.replace(make_request(PROMPT, max_tokens=20, **params), n=3)
        expected, results = (
            run(engine, [several]) for engine in (plain_engine(), engine_with(runner))
        )
        assert {key: each.token_ids for key, each in results.items()} == {
            key: each.token_ids for key, each in expected.items()
        }
        # the others lack the entry of the prompt's last token
        first = results[several.request_id, 0]
        assert first.final.num_accepted_tokens > 5


def test_a_request_that_finds_the_prompt_of_one_without_proposals_drafts_as_well() -> None:
    engine = engine_with(FakePredictor(1.0))
    request = make_request(PROMPT, max_tokens=20)
    unguessed = msgspec.structs.replace(
        request, speculation=SpeculationParams(max_proposed_tokens=0)
    )
    assert run_alone(engine, unguessed)[0].final.num_proposed_tokens == 0
    result = run_alone(engine, make_request(PROMPT, max_tokens=20))[0]
    assert result.final.num_cached_tokens == 36
    assert result.final.num_accepted_tokens == result.final.num_proposed_tokens > 10


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
        runner = FakePredictor(share)
        result = run_alone(engine_with(runner), request)[0]
        request = msgspec.structs.replace(request, request_id=f"again {share}")
        assert result.token_ids == run_alone(plain_engine(), request)[0].token_ids
        assert result.final.num_proposed_tokens > 0
        assert runner.prediction.num_poor == 0


def test_many_waiting_rows_are_made_entries_before_a_draft() -> None:
    """Drafts begin to pay when one stream is left; then each step computes up to 32 entries."""
    runner = FakePredictor(1.0, **ROOM)
    entries = Entries(AcceptanceRates((0.5,)), 0)
    layer = PredictionLayer(runner, runner.prediction)
    sequence = Sequence(make_request(list(range(90)), max_tokens=5), 0, 0)
    sequence.block_table, sequence.drafting = list(range(30)), entries
    entries.add(0, np.zeros((89, 97), np.float32))
    for waiting in (57, 25):
        assert layer.lags(sequence)
        layer.catch_up([sequence], 32)
        assert entries.num_waiting == waiting
    assert not layer.lags(sequence)


def test_a_layer_that_fails_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    runner = FakePredictor(1.0)
    runner.prediction._slots = runner.prediction._slots[:1]  # the device has lost its memory
    result = run_alone(engine_with(runner), make_request(PROMPT, max_tokens=20))[0]
    assert (
        result.token_ids
        == run_alone(plain_engine(), make_request(PROMPT, max_tokens=20))[0].token_ids
    )
    assert "the draft source failed and has been disabled" in caplog.text


def test_drafts_wait_for_missing_hidden_rows() -> None:
    entries = Entries(AcceptanceRates((0.5,)), 4)
    entries.add(4, np.ones((3, 2), np.float32))
    assert [entries.is_ready(num_tokens) for num_tokens in (7, 8, 9)] == [False, True, False]
    entries.add(6, np.full((2, 2), 2, np.float32))
    assert entries.take(4).tolist() == [[1, 1]] * 3 + [[2, 2]], "what is known is not taken twice"
    assert not entries.is_ready(9), "a draft begins with a row"
    entries.add(20, np.ones((1, 2), np.float32))
    assert entries.begin == 20, "what lies before is as it is in the cache"
    entries.cut(21, 0)
    assert not entries.num_waiting
