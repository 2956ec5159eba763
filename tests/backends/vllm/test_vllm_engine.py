"""Tests the engine with a stand-in for vLLM: parameters, outputs, errors, statistics."""

from typing import Any

import msgspec
import pytest

from ouzel.errors import ModelLoadError
from ouzel.sampling import BeamSearchParams, SamplingParams
from ouzel.types.engine_request import EngineRequest, Grammar, ReasoningBudget
from ouzel.types.step_output import FinishReason, StepOutput
from tests.backends.vllm.engines import list_vllm_requests, make_engine, run
from tests.engine.requests import make_request, with_adapter

FAILING, FATAL = 258, 259
# A grammar that contains another grammar.
NESTED_GRAMMARS = (
    '{"grammars": [{"lark_grammar": "start: \\"a\\" @g1\\n"}, '
    '{"lark_grammar": "start: \\"b\\"\\n"}]}'
)
BUDGET = ReasoningBudget(
    max_tokens=5, end_token_ids=(9,), starts=(b"<",), ends=(b">",), pieces={}, is_open=False
)


def list_tokens(outputs: list[StepOutput], request: EngineRequest, index: int = 0) -> list[int]:
    own = [
        output
        for output in outputs
        if (output.request_id, output.index) == (request.request_id, index)
    ]
    return [token_id for output in own for token_id in output.token_ids]


def find_final(outputs: list[StepOutput], request: EngineRequest, index: int = 0) -> StepOutput:
    [final] = [
        output
        for output in outputs
        if (output.request_id, output.index) == (request.request_id, index)
        and output.finish_reason is not None
    ]
    return final


def run_request(
    request: EngineRequest, reasoning_marks: tuple[str, str] | None = None
) -> tuple[list[StepOutput], Any]:
    """Returns the outputs, and vLLM's sampling parameters of the last choice."""
    engine = make_engine(reasoning_marks=reasoning_marks)
    engine.add(request)
    return [*filter(has_content, run(engine))], list_vllm_requests()[-1].params


def has_content(output: StepOutput) -> bool:
    """Tells whether the output does more than confirm the request."""
    return bool(output.token_ids or output.finish_reason is not None)


def test_info_comes_from_vllm() -> None:
    info = make_engine(max_model_len=128, max_num_seqs=4, dtype="float16").info

    assert (info.backend, info.model_type, info.device) == ("vllm", "parrot", "cuda")
    assert info.precision == "float16 by vLLM 0.33.0"
    assert (info.max_model_len, info.max_num_seqs) == (128, 4)
    assert (info.block_size, info.num_blocks) == (16, 1000)
    assert info.has_grammars
    assert not (info.has_beam_search or info.has_vision)
    assert not (info.has_prompt_lookup or info.has_drafts)


def test_each_choice_ends_once() -> None:
    request = make_request([1, 2, 3], n=3, max_tokens=5)
    outputs, _ = run_request(request)

    for index in range(3):
        assert list_tokens(outputs, request, index) == [1, 2, 3, 1, 2]
        assert find_final(outputs, request, index).finish_reason is FinishReason.LENGTH


def test_a_request_is_confirmed_before_vllm_computes_anything() -> None:
    accepted, refused = make_request([1], n=2), make_request([1], typical_p=0.5)
    engine = make_engine()
    engine.add(accepted)
    engine.add(refused)

    outputs = engine.step()

    assert [(output.request_id, output.index, has_content(output)) for output in outputs] == [
        (accepted.request_id, 0, False),
        (accepted.request_id, 1, False),
        (refused.request_id, 0, True),
    ]
    assert engine.info.confirms_requests
    assert list_tokens(run(engine), accepted)


def test_end_tokens_and_stop_tokens_end_a_choice() -> None:
    by_model = make_request([1, 2, 3], eos_token_ids=(3,))
    by_request = make_request([1, 2, 3], stop_token_ids=(2,))
    ignored = make_request([1, 2, 3], eos_token_ids=(3,), ignore_eos=True, max_tokens=4)
    later = make_request([1, 2, 3], eos_token_ids=(2,), min_tokens=3, max_tokens=5)
    engine = make_engine()
    for request in (by_model, by_request, ignored, later):
        engine.add(request)
    outputs = run(engine)

    assert list_tokens(outputs, by_model) == [1, 2, 3]
    assert find_final(outputs, by_model).stop_token_id == 3
    assert list_tokens(outputs, by_request) == [1, 2]
    assert find_final(outputs, by_request).stop_token_id == 2
    assert find_final(outputs, by_request).finish_reason is FinishReason.STOP
    assert len(list_tokens(outputs, ignored)) == 4
    assert find_final(outputs, ignored).stop_token_id is None
    assert 2 not in list_tokens(outputs, later)[:3]


def test_a_request_for_no_tokens_gets_logprobs_of_the_prompt() -> None:
    request = make_request(
        [1, 2], max_tokens=0, eos_token_ids=(1,), num_logprobs=1, num_prompt_logprobs=1
    )
    outputs, params = run_request(request)

    assert params.max_tokens == 1
    [output] = outputs
    assert (output.token_ids, output.logprobs, output.stop_token_id) == ([], [], None)
    assert output.finish_reason is FinishReason.LENGTH
    assert [position.sampled.token_id for position in output.prompt_logprobs] == [2]
    assert output.timing is not None


def test_sampling_parameters_reach_vllm() -> None:
    request = make_request(
        [1, 2],
        n=2,
        temperature=0.5,
        top_p=0.9,
        top_k=7,
        min_p=0.1,
        repetition_penalty=1.1,
        presence_penalty=0.2,
        frequency_penalty=0.3,
        seed=-3,
        min_tokens=2,
        logit_bias=((5, 4.0),),
        allowed_token_ids=(5, 6),
        bad_words=((8, 9),),
        priority=-2,
    )
    outputs, params = run_request(request)

    names = (
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
    )
    assert [getattr(params, name) for name in names] == [0.5, 0.9, 7, 0.1, 1.1, 0.2, 0.3]
    assert (params.seed, params.min_tokens) == ((-3 + 1) % 2**63, 2)
    assert (params.logit_bias, params.allowed_token_ids, params._bad_words_token_ids) == (
        {5: 4.0},
        [5, 6],
        [[8, 9]],
    )
    assert (params.ignore_eos, params.detokenize) == (True, False)
    assert list_vllm_requests()[-1].priority == -2
    assert set(list_tokens(outputs, request)) == {5}


def test_a_random_seed_is_not_sent_to_vllm() -> None:
    _, params = run_request(make_request([1], seed=77, is_seed_random=True, temperature=1.0))
    assert params.seed is None


def test_logprobs_have_ranks_and_begin_with_the_most_likely_token() -> None:
    request = make_request([1, 2], max_tokens=1, num_logprobs=2, num_prompt_logprobs=2)
    [output] = run_request(request)[0]

    [position] = output.logprobs
    assert (position.sampled.token_id, position.sampled.logprob, position.rank) == (1, -3.0, 3)
    assert [(entry.token_id, entry.logprob) for entry in position.top] == [(7, -1.0), (8, -2.0)]
    [in_prompt] = output.prompt_logprobs
    assert (in_prompt.sampled.token_id, in_prompt.rank, len(in_prompt.top)) == (2, 99, 2)


def test_logprob_token_ids_choose_the_tokens_of_logprobs() -> None:
    request = make_request([1], max_tokens=1, num_logprobs=0, logprob_token_ids=(11, 12))
    [output] = run_request(request)[0]
    assert [entry.token_id for entry in output.logprobs[0].top] == [11, 12]


def test_a_grammar_reaches_vllm_unchanged_and_constrains_the_output() -> None:
    text = 'start: "7-" T1\nT1: /[xy]{3}/\n'
    request = make_request(b"abc", grammar=text, eos_token_ids=(257,), max_tokens=20)
    outputs, params = run_request(request)

    assert params.structured_outputs.grammar == text
    assert bytes(list_tokens(outputs, request)[:-1]).startswith(b"7-")
    assert find_final(outputs, request).stop_token_id == 257


def test_one_choice_or_all_choices_may_be_aborted() -> None:
    request, other = make_request([1], n=2, max_tokens=30), make_request([2], max_tokens=10)
    engine = make_engine()
    engine.add(request)
    engine.add(other)
    engine.step()  # confirms both
    outputs = engine.step()
    engine.abort(request.request_id, 1)
    outputs += engine.step() + engine.step()
    engine.abort(request.request_id)
    engine.abort("unknown")
    outputs += run(engine)

    assert {find_final(outputs, request, index).finish_reason for index in (0, 1)} == {
        FinishReason.ABORT
    }
    assert (len(list_tokens(outputs, request, 0)), len(list_tokens(outputs, request, 1))) == (2, 1)
    assert list_tokens(outputs, other) == [2] * 10
    assert (engine.stats().num_running, engine.stats().num_used_blocks) == (0, 0)


def test_prefixes_are_hits_with_the_same_salt_only() -> None:
    engine = make_engine()
    prompt = list(range(40))
    hits = []
    for salt in ("a/key@1", "a/key@1", "another"):
        request = make_request(prompt, cache_salt=salt, max_tokens=1)
        engine.add(request)
        hits.append(find_final(run(engine), request).num_cached_tokens)

    assert hits == [0, 32, 0]
    stats = engine.stats()
    assert (stats.num_prefix_query_tokens, stats.num_prefix_hit_tokens) == (120, 32)


def test_statistics_count_running_and_waiting_choices() -> None:
    engine = make_engine(max_num_seqs=2)
    engine.add(make_request([1], n=3, max_tokens=9))
    engine.step()  # confirms it
    engine.step()

    stats = engine.stats()
    assert (stats.num_running, stats.num_waiting, stats.num_blocks) == (2, 1, 1000)
    assert stats.num_used_blocks == 2


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"beam_search": BeamSearchParams(width=2)}, "use_beam_search"),
        ({"typical_p": 0.5}, "typical_p"),
        ({"no_repeat_ngram_size": 3}, "no_repeat_ngram_size"),
        ({"repeat_last_n": 64, "presence_penalty": 0.5}, "repeat_last_n"),
        ({"num_logprobs": 2, "logprob_token_ids": (1,)}, "logprob_token_ids"),
        ({"num_logprobs": 0, "logprob_token_ids": tuple(range(129))}, "logprob_token_ids"),
        ({"num_logprobs": 21}, "logprobs"),
    ],
)
def test_an_error_names_a_field_that_vllm_does_not_support(
    fields: dict[str, Any], param: str
) -> None:
    refused, other = make_request([1, 2], n=2, **fields), make_request([3], max_tokens=2)
    engine = make_engine()
    engine.add(refused)
    engine.add(other)
    outputs = run(engine)

    for index in (0, 1):
        output = find_final(outputs, refused, index)
        assert (output.finish_reason, output.error_param) == (FinishReason.REFUSED, param)
        assert param in (output.error or "")
    assert list_tokens(outputs, other) == [3, 3]


class NewerParams(SamplingParams, frozen=True, kw_only=True):
    top_a: float = 0.0


def test_a_parameter_without_a_translation_is_refused() -> None:
    plain, request = make_request([1]), make_request([1])
    plain = msgspec.structs.replace(plain, params=NewerParams(max_tokens=1))
    request = msgspec.structs.replace(request, params=NewerParams(max_tokens=1, top_a=0.5))

    assert find_final(run_request(plain)[0], plain).finish_reason is FinishReason.LENGTH
    refused = find_final(run_request(request)[0], request)
    assert (refused.finish_reason, refused.error_param) == (FinishReason.REFUSED, "top_a")
    assert refused.error == "top_a must be 0 with this engine (vLLM), given 0.5"


def test_an_error_about_a_nested_grammar_names_its_field() -> None:
    request = msgspec.structs.replace(make_request([1]), grammar=Grammar(NESTED_GRAMMARS, "tools"))
    [output] = run_request(request)[0]
    assert (output.finish_reason, output.error_param) == (FinishReason.REFUSED, "tools")


def test_an_adapter_is_refused() -> None:
    [output] = run_request(with_adapter(make_request([1]), "a"))[0]
    assert (output.finish_reason, output.error_param) == (FinishReason.REFUSED, "model")


def test_a_reasoning_budget_requires_reasoning_marks() -> None:
    request = msgspec.structs.replace(make_request([1], max_tokens=1), reasoning_budget=BUDGET)
    outputs, params = run_request(request, reasoning_marks=("<think>", "</think>"))
    [refused] = run_request(request)[0]

    assert params.thinking_token_budget == 5
    assert find_final(outputs, request).finish_reason is FinishReason.LENGTH
    assert refused.finish_reason is FinishReason.REFUSED
    assert refused.error_param == "thinking_token_budget"


def test_a_request_that_vllm_refuses_ends_alone() -> None:
    bad, good = make_request([99_999]), make_request([1], max_tokens=1)
    engine = make_engine()
    engine.add(bad)
    engine.add(good)
    outputs = run(engine)

    assert find_final(outputs, bad).finish_reason is FinishReason.REFUSED
    assert "vocabulary" in (find_final(outputs, bad).error or "")
    assert list_tokens(outputs, good) == [1]


def test_a_request_that_fails_ends_alone() -> None:
    bad, good = make_request([FAILING, 1]), make_request([1], max_tokens=4)
    engine = make_engine()
    engine.add(bad)
    engine.add(good)
    outputs = run(engine)

    assert find_final(outputs, bad).finish_reason is FinishReason.ERROR
    assert list_tokens(outputs, good) == [1] * 4


def test_a_fatal_error_of_vllm_is_raised() -> None:
    engine = make_engine()
    engine.add(make_request([FATAL]))
    engine.step()
    with pytest.raises(Exception, match="EngineCore encountered an issue"):
        engine.step()


def test_a_request_id_in_use_is_refused() -> None:
    engine, request = make_engine(), make_request([1])
    engine.add(request)
    with pytest.raises(ValueError, match=request.request_id):
        engine.add(request)


def test_an_unknown_argument_of_vllm_is_refused() -> None:
    with pytest.raises(ModelLoadError, match=r"--engine-args: .* 'enforce_eagre'"):
        make_engine(enforce_eagre=True)


def test_close_ends_vllm() -> None:
    engine = make_engine()
    engine.close()
    assert engine._engine.is_shut_down
