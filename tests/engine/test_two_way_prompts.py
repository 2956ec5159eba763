"""Tests prompts whose tokens attend to each other: no cuts, sharing, preemption, forks, beams.

The logits of FakeRunner depend on the tokens that each token of such a prompt saw in its step.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from ouzel.types.step_output import FinishReason
from tests.engine.drafting import FREE
from tests.engine.requests import make_request, run, run_alone
from tests.engine.test_images import picture, request

TEXT = [(7 * i) % 89 for i in range(40)]


def make_runner(**options: Any) -> FakeRunner:  # options of FakeRunner
    return FakeRunner(num_encoder_parts=2, attends_to_whole_prompts=True, **options)


def make_image_runner() -> FakeRunner:
    """Makes a runner of a model that reads only the tokens of pictures both ways."""
    return FakeRunner(
        num_encoder_parts=1, attends_to_whole_images=True, max_num_batched_tokens=1000
    )


def tokens_alone(original: EngineRequest, index: int = 0) -> list[int]:
    engine = EngineCore(make_runner(max_num_batched_tokens=1000), prefix_caching=False)
    return run_alone(engine, original)[index].token_ids


def list_computed_prompts(runner: FakeRunner) -> list[int]:
    """Returns the number of tokens of each prompt that was computed from its begin."""
    return [
        int(length)
        for batch in runner.batches
        for past_len, length in zip(batch.past_lens, np.diff(batch.subsequence_begins), strict=True)
        if not past_len
    ]


def many_requests(lens: Iterable[int], **params: Any) -> list[EngineRequest]:
    return [make_request([i, *TEXT[: length - 1]], **params) for i, length in enumerate(lens)]


def test_a_later_token_of_the_prompt_changes_all_rows_before_it() -> None:
    """The runner tells two-way prompts from causal ones, or the tests here would show nothing."""
    two_way = tokens_alone(make_request(TEXT))

    causal = run_alone(EngineCore(FakeRunner()), make_request(TEXT))[0].token_ids

    assert two_way != causal


@pytest.mark.parametrize("max_num_batched_tokens", [1, 5, 16, 39, 40, 41])
def test_a_prompt_is_computed_in_one_step(max_num_batched_tokens: int) -> None:
    runner = make_runner(max_num_batched_tokens=max_num_batched_tokens, max_num_seqs=1)

    result = run_alone(EngineCore(runner), make_request(TEXT))[0]

    assert result.token_ids == tokens_alone(make_request(TEXT))
    assert [len(batch.token_ids) for batch in runner.batches] == [40] + [1] * 7


def test_prompts_of_many_lengths_beside_each_other_change_nobodys_tokens() -> None:
    requests = many_requests([1, 2, 3, 4, 5, 15, 16, 17, 30, 39, 40, 8, 12], max_tokens=12)
    engine = EngineCore(make_runner())

    results = run(engine, requests)

    for each in requests:
        assert results[each.request_id, 0].token_ids == tokens_alone(each)


def test_only_an_equal_prompt_is_found_in_the_prefix_cache() -> None:
    engine = EngineCore(make_runner())
    first = make_request(TEXT)
    answer = run_alone(engine, first)[0].token_ids
    prompts = {
        "equal": (TEXT, 36),
        "longer": ([*TEXT, 5], 0),
        "shorter": (TEXT[:36], 0),
        "with the answer": (TEXT + answer, 0),
    }
    for name, (prompt, num_cached) in prompts.items():
        result = run_alone(engine, make_request(prompt))[0]
        assert result.token_ids == tokens_alone(make_request(prompt)), name
        assert result.final.num_cached_tokens == num_cached, name


def test_an_equal_prompt_with_another_picture_shares_nothing() -> None:
    engine = EngineCore(make_runner())
    cat, dog = (request(picture(name, (30, 8)), token_ids=TEXT) for name in ("cat", "dog"))
    run_alone(engine, cat)

    result = run_alone(engine, dog)[0]

    assert result.token_ids == tokens_alone(dog)
    assert result.final.num_cached_tokens == 0


def test_a_picture_that_touches_another_picture_is_shared_only_beside_it() -> None:
    """Tokens of the cat see the dog, so a cat before a bird has other rows."""
    cat, dog, bird = picture("cat", (0, 8)), picture("dog", (8, 8)), picture("bird", (8, 8))
    chats = [request(*each, token_ids=TEXT) for each in ((cat, dog), (cat, bird), (cat,))]
    chats.append(chats[0])
    engine = EngineCore(make_image_runner())

    results = [run_alone(engine, each)[0] for each in chats]

    assert [result.final.num_cached_tokens for result in results] == [0, 0, 0, 36]
    for each, result in zip(chats, results, strict=True):
        alone = EngineCore(make_image_runner(), prefix_caching=False)
        assert result.token_ids == run_alone(alone, each)[0].token_ids


def test_a_prompt_waits_for_all_its_pictures() -> None:
    """The features of the first picture are ready long before the features of the second."""
    pictures = picture("cat", (0, 8)), picture("dog", (8, 8))
    runner = make_runner(max_num_batched_tokens=8, max_num_seqs=2)
    stream = make_request([1, 2, 3], max_tokens=30)

    results = run(EngineCore(runner), [stream, seen := request(*pictures, token_ids=TEXT)])

    assert results[seen.request_id, 0].token_ids == tokens_alone(seen)
    assert results[stream.request_id, 0].token_ids == tokens_alone(stream)
    assert max(len(batch.token_ids) for batch in runner.batches) >= 40


def test_preempted_sequences_compute_prompt_and_output_again() -> None:
    requests = many_requests([20, 21, 22, 23, 24, 25], max_tokens=30)
    runner = make_runner(num_blocks=20, max_num_seqs=6)
    engine = EngineCore(runner, prefix_caching=False)

    results = run(engine, requests)

    num_preemptions = engine.stats().num_preemptions
    assert num_preemptions
    assert len(list_computed_prompts(runner)) == 6 + num_preemptions
    for each in requests:
        assert results[each.request_id, 0].token_ids == tokens_alone(each)


def test_preempted_sequences_find_their_own_blocks() -> None:
    requests = many_requests([20, 21, 22, 23, 24, 25], max_tokens=30)
    runner = make_runner(num_blocks=20, max_num_seqs=6)
    engine = EngineCore(runner)

    results = run(engine, requests)

    num_preemptions = engine.stats().num_preemptions
    assert 6 <= len(list_computed_prompts(runner)) < 6 + num_preemptions
    for each in requests:
        assert results[each.request_id, 0].token_ids == tokens_alone(each)


def test_choices_and_beams_share_the_prompt() -> None:
    choices = make_request(TEXT[:30], n=3, temperature=1.0, seed=1)
    beams = make_request(TEXT[:26], n=2, beam_search=BeamSearchParams(width=3))
    runner = make_runner(num_blocks=40, max_num_seqs=4)

    results = run(EngineCore(runner), [choices, beams])

    assert list_computed_prompts(runner) == [30, 26]
    for index in range(3):
        assert results[choices.request_id, index].token_ids == tokens_alone(choices, index)
    for index in range(2):
        assert results[beams.request_id, index].token_ids == tokens_alone(beams, index)


def test_a_preempted_search_starts_again_from_its_prompt() -> None:
    streams = many_requests([20, 21, 22], max_tokens=40)
    search = make_request(TEXT[:30], n=3, max_tokens=30, beam_search=BeamSearchParams(width=3))
    runner = make_runner(num_blocks=36, max_num_seqs=6)
    engine = EngineCore(runner, prefix_caching=False)

    results = run(engine, [*streams, search])

    assert engine.stats().num_preemptions
    assert list_computed_prompts(runner).count(30) > 1
    for index in range(3):
        assert results[search.request_id, index].token_ids == tokens_alone(search, index)
    for batch in runner.batches:
        assert batch.two_way_begins is not None
        is_of_prompt = np.isin(np.repeat(batch.past_lens, np.diff(batch.subsequence_begins)), 0)
        is_of_prompt &= batch.positions < 20
        assert (batch.two_way_begins[is_of_prompt] == 0).all()


def test_guessed_tokens_change_no_answer() -> None:
    original = make_request(TEXT[:30], max_tokens=24)
    expected = tokens_alone(original)
    predicted = SpeculationParams(predicted_token_ids=expected)
    engine = EngineCore(make_runner(), speculation=Speculation(costs=FREE))

    [guessed] = run_alone(engine, msgspec.structs.replace(original, speculation=predicted))

    assert guessed.token_ids == expected
    assert engine.stats().num_accepted_tokens > 10


def test_logprobs_of_the_prompt_are_refused() -> None:
    result = run_alone(EngineCore(make_runner()), make_request(TEXT, num_prompt_logprobs=1))[0]

    assert result.finish_reason is FinishReason.REFUSED
    assert result.final.error_param == "prompt_logprobs"
    assert "see each other" in (result.final.error or "")
