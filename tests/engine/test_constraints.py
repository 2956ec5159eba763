"""Tests requests with grammars: their outputs, their costs, and their unaffected neighbours."""

import json
from collections.abc import Iterator
from typing import Any  # sampling parameters are forwarded as they are

import msgspec
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.sampling import BeamSearchParams
from ouzel.types.step_output import FinishReason
from tests.engine.requests import Result, make_request, run, run_alone
from tests.grammar.tokenizers import grammar_tokenizer, special_ids, trained_tokenizer

VOCAB_SIZE = 512
END = special_ids()["<|im_end|>"]
PROMPT = trained_tokenizer().encode("The weather is").ids

ANSWER = """start: "The answer is " /[0-9]{2}/ ", and that is all." """
OBJECT = (
    'start: %json {"type": "object", "properties": {"a": {"enum": [true, false]}, '
    '"b": {"type": "integer"}}, "required": ["a", "b"], "additionalProperties": false, '
    '"x-guidance": {"whitespace_flexible": false}}'
)
LETTERS = "start: /[a-z]*/"


@pytest.fixture(scope="module")
def compiler() -> Iterator[GrammarCompiler]:
    compiler = GrammarCompiler(grammar_tokenizer(VOCAB_SIZE))
    yield compiler
    compiler.close()


def make_engine(compiler: GrammarCompiler | None, **options: Any) -> EngineCore:
    runner = FakeRunner(
        vocab_size=VOCAB_SIZE, **{"max_model_len": 256, "num_blocks": 128, **options}
    )
    return EngineCore(runner, grammars=compiler)


def make_constrained(grammar: str, **params: Any) -> Any:
    return make_request(
        PROMPT, grammar=grammar, eos_token_ids=(END,), **{"max_tokens": 60, **params}
    )


def text(result: Result) -> str:
    return trained_tokenizer().decode(result.token_ids)


@pytest.mark.parametrize("seed", range(10))
def test_the_output_fits_the_grammar(compiler: GrammarCompiler, seed: int) -> None:
    result = run_alone(make_engine(compiler), make_constrained(OBJECT, temperature=1.0, seed=seed))[
        0
    ]
    assert result.finish_reason is FinishReason.STOP
    assert set(json.loads(text(result))) == {"a", "b"}
    assert result.num_timings == 1


def test_forced_tokens_take_no_step_and_change_nothing(compiler: GrammarCompiler) -> None:
    runners = [FakeRunner(vocab_size=VOCAB_SIZE) for _ in range(2)]
    with_steps, without = (EngineCore(runner, grammars=compiler) for runner in runners)
    stepwise = run_alone(
        with_steps, make_constrained(ANSWER, num_logprobs=0, temperature=1.0, seed=3)
    )[0]
    forced = run_alone(without, make_constrained(ANSWER, temperature=1.0, seed=3))[0]
    assert forced.token_ids == stepwise.token_ids
    assert text(forced).startswith("The answer is ")
    assert text(forced).endswith(", and that is all.")
    assert len(stepwise.logprobs) == len(stepwise.token_ids)
    assert len(runners[1].batches) < len(runners[0].batches) / 3


def test_when_too_many_grammars_take_long_the_next_is_put_off_and_others_are_served() -> None:
    hurried = GrammarCompiler(grammar_tokenizer(VOCAB_SIZE), timeout_s=600, quick_s=0.02)
    engine = make_engine(hurried)
    for number in range(10):
        engine.add(
            make_constrained(
                f'start: %json {{"type": "integer", "multipleOf": {99_400_891 + 2 * number}}}'
            )
        )
    engine.add(make_constrained(OBJECT))
    ends: list[tuple[FinishReason, str | None]] = []
    while len({reason for reason, _ in ends}) < 2:
        ends += [
            (each.finish_reason, each.error)
            for each in engine.step()
            if each.finish_reason is not None
        ]
    engine.close()

    put_off = "too many slow grammars are being compiled; try again later"
    assert set(ends) == {(FinishReason.OVERLOADED, put_off), (FinishReason.STOP, None)}


@pytest.mark.parametrize("num_logprobs", [None, 0])
def test_a_banned_token_is_not_forced(compiler: GrammarCompiler, num_logprobs: int | None) -> None:
    answer = run_alone(make_engine(compiler), make_constrained(ANSWER))[0].token_ids
    banned = make_constrained(
        ANSWER, bad_words=((answer[2], answer[3]),), num_logprobs=num_logprobs
    )
    result = run_alone(make_engine(compiler), banned)[0]
    assert result.token_ids == answer[:3]
    assert result.finish_reason is FinishReason.REFUSED
    assert (
        result.final.error
        == "no token is left to choose: bad_words, the grammar exclude every token"
    )


@pytest.mark.parametrize(
    "params", [{"temperature": 1.0}, {"beam_search": BeamSearchParams(width=2)}]
)
def test_a_grammar_that_meets_a_limit_on_its_way_is_refused(
    compiler: GrammarCompiler, params: dict[str, Any]
) -> None:
    many = "a: " + " | ".join(f'"b{number}" a' for number in range(6000))
    request = make_constrained(f'start: "The answer is " a\n{many}', **params)
    result = run_alone(make_engine(compiler), request)[0]
    assert result.finish_reason is FinishReason.REFUSED
    assert result.final.error is not None
    assert result.final.error.startswith("response_format: the grammar is too complex: ")
    assert "non-verbose" not in result.final.error
    assert result.final.error_param == "response_format"


@pytest.mark.parametrize("max_tokens", range(1, 12))
def test_forced_tokens_end_at_the_limit(compiler: GrammarCompiler, max_tokens: int) -> None:
    result = run_alone(make_engine(compiler), make_constrained(ANSWER, max_tokens=max_tokens))[0]
    assert len(result.token_ids) == max_tokens
    assert result.finish_reason is FinishReason.LENGTH


def test_neighbours_do_not_notice(compiler: GrammarCompiler) -> None:
    plain = [
        make_request([*PROMPT[:-1], i], max_tokens=20, temperature=1.0, seed=i) for i in range(3)
    ]
    alone = [run_alone(make_engine(compiler), request)[0].token_ids for request in plain]
    results = run(
        make_engine(compiler),
        [make_constrained(OBJECT, temperature=1.0, seed=1), *plain, make_constrained(ANSWER)],
    )
    assert [results[request.request_id, 0].token_ids for request in plain] == alone


def test_a_batch_gives_the_same_tokens_as_each_request_alone(compiler: GrammarCompiler) -> None:
    requests = [
        make_constrained(g, temperature=1.0, seed=s)
        for s, g in enumerate((OBJECT, ANSWER, LETTERS, OBJECT))
    ]
    alone = [run_alone(make_engine(compiler), request)[0].token_ids for request in requests]
    results = run(make_engine(compiler), requests)
    assert [results[request.request_id, 0].token_ids for request in requests] == alone


def test_choices_have_sessions_of_their_own(compiler: GrammarCompiler) -> None:
    results = run_alone(
        make_engine(compiler), make_constrained(OBJECT, n=4, temperature=1.0, seed=5)
    )
    assert all(set(json.loads(text(result))) == {"a", "b"} for result in results)
    assert len({text(result) for result in results}) > 1


def test_preempted_requests_go_on_from_their_place(compiler: GrammarCompiler) -> None:
    grammar = """start: "The answer is " /[a-z]{24}/ ", and that is all." """
    requests = [make_constrained(grammar, temperature=1.0, seed=seed) for seed in range(6)]
    engine = make_engine(compiler, num_blocks=16, max_model_len=64)
    results = run(engine, requests)
    assert engine.stats().num_preemptions > 0
    for request in requests:
        alone = run_alone(make_engine(compiler), request)[0]
        assert results[request.request_id, 0].token_ids == alone.token_ids
    assert engine.stats().num_used_blocks == 0


def test_an_end_token_is_allowed_where_the_grammar_may_end(compiler: GrammarCompiler) -> None:
    result = run_alone(
        make_engine(compiler), make_constrained(LETTERS, logit_bias=((END, 100.0),))
    )[0]
    assert result.token_ids == [END]
    assert result.final.stop_token_id == END


def test_a_bad_grammar_refuses_its_own_request_only(compiler: GrammarCompiler) -> None:
    bad, good = make_constrained("start: nowhere"), make_constrained(ANSWER)
    results = run(make_engine(compiler), [bad, good])
    final = results[bad.request_id, 0].final
    assert (final.finish_reason, final.error_param) == (FinishReason.REFUSED, "response_format")
    assert "nowhere" in str(final.error)
    assert results[good.request_id, 0].finish_reason is FinishReason.STOP


def test_an_engine_without_grammars_refuses_them() -> None:
    final = run_alone(make_engine(None), make_constrained(ANSWER))[0].final
    assert (final.finish_reason, final.error) == (
        FinishReason.REFUSED,
        "response_format: this engine does not support grammars",
    )


def test_an_abort_while_compiling_leaves_nothing_behind(compiler: GrammarCompiler) -> None:
    engine = make_engine(compiler)
    request = make_constrained(ANSWER + " ", n=3)
    engine.add(request)
    engine.abort(request.request_id, 0)
    engine.abort(request.request_id, 2)
    results = run(engine)
    reasons = [results[request.request_id, index].finish_reason for index in range(3)]
    assert reasons == [FinishReason.ABORT, FinishReason.STOP, FinishReason.ABORT]
    assert not engine.has_unfinished()
    assert engine.stats().num_used_blocks == 0


def test_a_request_with_the_id_of_one_that_left_while_compiling_gets_its_own_grammar(
    compiler: GrammarCompiler,
) -> None:
    engine = make_engine(compiler)
    left, request = make_constrained(ANSWER + "  "), make_constrained(OBJECT + "  ")
    request = msgspec.structs.replace(request, request_id=left.request_id)
    engine.add(left)
    engine.abort(left.request_id)
    engine.step()

    result = run_alone(engine, request)[0]

    assert set(json.loads(text(result))) == {"a", "b"}


def test_bans_that_leave_nothing_of_the_grammar_refuse_the_request(
    compiler: GrammarCompiler,
) -> None:
    final = run_alone(
        make_engine(compiler), make_constrained('start: "a"', bad_words=(tuple(tokens("a")),))
    )[0].final
    assert final.finish_reason is FinishReason.REFUSED
    assert "the grammar" in str(final.error)


def tokens(word: str) -> list[int]:
    return list(trained_tokenizer().encode(word).ids)
