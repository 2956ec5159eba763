"""Reasoning is ended when its budget is used up; then the model goes on from there."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any  # sampling parameters are forwarded as they are

import msgspec
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.state.reasoning_limit import ReasoningLimit
from ouzel.grammar.formats import add_reasoning, compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest, ReasoningBudget
from ouzel.types.step_output import FinishReason
from tests.engine.requests import make_request, run, run_alone
from tests.grammar.tokenizers import grammar_tokenizer, special_ids, trained_tokenizer

PROMPT = [5, 6, 7, 8, 9]


def spell(token_ids: Sequence[int]) -> bytes:
    """Returns a text for the tokens; no token's text is part of another's."""
    return b"".join(b"<%d>" % token_id for token_id in token_ids)


def make_budget(
    max_tokens: int,
    *ends: Sequence[int],
    start: Sequence[int] = (),
    may_repeat: bool = False,
) -> ReasoningBudget:
    """Makes a budget of reasoning tokens.

    The engine writes the first of the `ends`. Without a `start` the prompt has begun the reasoning.
    """
    marks = [tuple(mark) for mark in (start or (96, 96, 96), *ends)]
    return ReasoningBudget(
        max_tokens=max_tokens,
        end_token_ids=marks[1],
        starts=(spell(marks[0]),),
        ends=tuple(map(spell, marks[1:])),
        pieces={token_id: spell([token_id]) for mark in marks for token_id in mark},
        is_open=not start,
        may_repeat=may_repeat,
    )


def with_budget(
    limit: ReasoningBudget, prompt: Sequence[int] = PROMPT, **params: Any
) -> EngineRequest:
    request = make_request(prompt, **{"max_tokens": 20, **params})
    return msgspec.structs.replace(request, reasoning_budget=limit)


def make_engine(**options: Any) -> EngineCore:
    return EngineCore(FakeRunner(**options))


def output(request: EngineRequest, **options: Any) -> list[int]:
    return run_alone(make_engine(**options), request)[0].token_ids


def free_output(prompt: Sequence[int] = PROMPT, **params: Any) -> list[int]:
    return output(make_request(prompt, **{"max_tokens": 20, **params}))


@pytest.mark.parametrize("seed", range(12))
def test_after_the_budget_comes_the_end_and_the_model_goes_on_from_it(seed: int) -> None:
    numbers = random.Random(seed)
    prompt = [numbers.randrange(90) for _ in range(numbers.randint(1, 12))]
    free = free_output(prompt)
    num_reasoning = numbers.randint(0, 12)
    end = numbers.sample(sorted(set(range(97)) - set(free)), numbers.randint(1, 3))

    token_ids = output(with_budget(make_budget(num_reasoning, end), prompt))

    before = [*free[:num_reasoning], *end]
    answer = free_output([*prompt, *before], max_tokens=20 - len(before))
    assert token_ids == before + answer


def test_the_end_takes_no_step_and_has_logprobs_if_asked() -> None:
    runners = [FakeRunner(), FakeRunner()]
    request = with_budget(make_budget(6, [90, 91, 92]))
    scored_request = with_budget(make_budget(6, [90, 91, 92]), num_logprobs=2)

    quick = run_alone(EngineCore(runners[0]), request)[0]
    scored = run_alone(EngineCore(runners[1]), scored_request)[0]

    assert quick.token_ids == scored.token_ids
    assert len(runners[0].batches) == len(runners[1].batches) - 3
    assert [position.sampled.token_id for position in scored.logprobs] == scored.token_ids
    assert all(
        position.top[0].logprob > position.sampled.logprob for position in scored.logprobs[6:9]
    )


def test_an_end_of_the_models_own_is_left_alone() -> None:
    free = free_output()
    for end in ([free[3]], free[3:5]):
        assert output(with_budget(make_budget(10, end))) == free
        assert output(with_budget(make_budget(10, [95], end))) == free


@pytest.mark.parametrize("num_written", [1, 2])
def test_an_end_that_the_model_has_begun_is_completed(num_written: int) -> None:
    free = free_output()
    end = [*free[5 - num_written : 5], 95, 96]
    assert output(with_budget(make_budget(5, end)))[:7] == [*free[:5], 95, 96]


def test_a_budget_counts_from_the_start_that_the_model_writes() -> None:
    free = free_output()
    assert output(with_budget(make_budget(4, [95], start=free[:2])))[:7] == [*free[:6], 95]
    assert output(with_budget(make_budget(0, [95], start=free[:2])))[:3] == [*free[:2], 95]


def test_a_later_start_does_not_count_unless_reasoning_may_repeat() -> None:
    free = free_output()
    assert output(with_budget(make_budget(2, [95], start=free[4:6]))) == free
    assert output(with_budget(make_budget(2, [95], start=free[4:6], may_repeat=True)))[:9] == [
        *free[:8],
        95,
    ]


def test_reasoning_that_begins_again_has_the_rest_of_the_budget() -> None:
    limit = ReasoningLimit(make_budget(3, [2], start=[1], may_repeat=True))
    token_ids: list[int] = []
    for token_id in (1, 50, 51, 2, 60, 1, 52):
        assert limit.due == ()
        token_ids.append(token_id)
        limit.note(token_ids)
    assert limit.due == (2,)


def test_whitespace_may_stand_before_a_start() -> None:
    pieces = {1: b"\n ", 2: b"<think>", 3: b"</", 4: b"think>\n"}
    texts = ReasoningBudget(
        max_tokens=2,
        end_token_ids=(3, 4),
        starts=(b"<think>",),
        ends=(b"</think>",),
        pieces=pieces,
        is_open=False,
    )
    for token_ids, due in [
        ((1, 2, 9, 9), (3, 4)),
        ((1, 2, 9, 3), (4,)),
        ((2, 9, 3, 4), ()),
        ((9, 2, 9, 9, 9), ()),
    ]:
        limit = ReasoningLimit(texts)
        for num in range(1, len(token_ids) + 1):
            limit.note(list(token_ids[:num]))
        assert limit.due == due, token_ids


@pytest.mark.parametrize("max_tokens", [3, 5, 6, 7, 9])
def test_max_tokens_may_end_it_first(max_tokens: int) -> None:
    result = run_alone(make_engine(), with_budget(make_budget(5, [93, 94]), max_tokens=max_tokens))[
        0
    ]
    assert result.token_ids == output(with_budget(make_budget(5, [93, 94])))[:max_tokens]
    assert result.finish_reason is FinishReason.LENGTH
    assert result.num_timings == 1


def test_each_choice_has_the_budget() -> None:
    request = with_budget(make_budget(5, [96]), n=4, temperature=1.0, seed=3)
    token_ids = [result.token_ids for result in run_alone(make_engine(), request)]
    assert len({tuple(each[:5]) for each in token_ids}) == 4
    assert all(each.index(96) == 5 or 96 in each[:5] for each in token_ids)


def test_preemption_and_neighbours_change_nothing() -> None:
    requests = [
        with_budget(
            make_budget(num, [93, 94, 95]),
            [num + 1] * 6,
            max_tokens=24,
            n=1 + num % 2,
            temperature=1.0,
            seed=num,
        )
        for num in range(8)
    ]
    alone = [[each.token_ids for each in run_alone(make_engine(), request)] for request in requests]
    engine = make_engine(num_blocks=20)
    results = run(engine, requests)
    together = [
        [results[request.request_id, index].token_ids for index in range(request.n)]
        for request in requests
    ]
    assert together == alone
    assert engine.stats().num_preemptions > 0
    assert engine.stats().num_used_blocks == 0


def test_an_end_that_is_banned_ends_the_request() -> None:
    result = run_alone(
        make_engine(), with_budget(make_budget(3, [96]), allowed_token_ids=tuple(range(50)))
    )[0]
    assert result.finish_reason is FinishReason.REFUSED
    why = "no token is left to choose: allowed_token_ids, thinking_token_budget exclude every token"
    assert result.final.error == why


def test_the_end_may_stop_the_output() -> None:
    result = run_alone(make_engine(), with_budget(make_budget(3, [96]), stop_token_ids=(96,)))[0]
    assert (result.token_ids, result.final.stop_token_id) == ([*free_output()[:3], 96], 96)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (
            with_budget(make_budget(3, [97])),
            "the end of the reasoning must be token ids in [0, 97)",
        ),
        (
            with_budget(msgspec.structs.replace(make_budget(3, [9]), end_token_ids=())),
            "the end mark of the reasoning must have at least one token",
        ),
        (
            with_budget(make_budget(3, [9]), beam_search=BeamSearchParams(width=2)),
            "a beam search cannot have a reasoning budget",
        ),
    ],
)
def test_faults_are_refused(request_: EngineRequest, error: str) -> None:
    result = run_alone(make_engine(), request_)[0]
    assert (result.finish_reason, result.final.error) == (FinishReason.REFUSED, error)


@pytest.fixture(scope="module")
def compiler() -> Iterator[GrammarCompiler]:
    compiler = GrammarCompiler(grammar_tokenizer(512))
    yield compiler
    compiler.close()


@pytest.mark.parametrize("num_logprobs", [None, 0])
@pytest.mark.parametrize("num_reasoning", [0, 1, 7])
def test_a_grammar_goes_on_after_the_end(
    compiler: GrammarCompiler, num_reasoning: int, num_logprobs: int | None
) -> None:
    tokenizer = trained_tokenizer()
    end = tokenizer.encode("</so>").ids
    answer_format = {"type": "regex", "pattern": r"The answer is [0-9]{2}\."}
    form = add_reasoning(answer_format, start="<so>", ends=["</so>"], is_open=True)
    grammar = compile_format(form, GrammarVocabulary({}, 512), strict=False, styles={})
    pieces = {token_id: tokenizer.decode([token_id]).encode() for token_id in end}
    limit = ReasoningBudget(
        max_tokens=num_reasoning,
        end_token_ids=tuple(end),
        starts=(b"<so>",),
        ends=(b"</so>",),
        pieces=pieces,
        is_open=True,
    )
    request = make_request(
        tokenizer.encode("The weather is").ids,
        grammar=grammar,
        eos_token_ids=(special_ids()["<|im_end|>"],),
        max_tokens=60,
        num_logprobs=num_logprobs,
    )
    engine = EngineCore(FakeRunner(vocab_size=512, max_model_len=256), grammars=compiler)

    result = run_alone(engine, msgspec.structs.replace(request, reasoning_budget=limit))[0]

    assert result.finish_reason is FinishReason.STOP
    num_before = next(
        num for num in range(num_reasoning, 99) if result.token_ids[num : num + len(end)] == end
    )
    assert num_before <= num_reasoning + 3, "a character is finished first"
    answer = tokenizer.decode(result.token_ids[num_before + len(end) :])
    assert re.fullmatch(r"\n{0,2}The answer is [0-9]{2}\.", answer)


@pytest.mark.parametrize("num_logprobs", [None, 0])
@pytest.mark.parametrize("num_reasoning", [0, 1, 7])
def test_tokens_that_a_grammar_forces_are_not_ended(
    compiler: GrammarCompiler, num_reasoning: int, num_logprobs: int | None
) -> None:
    tokenizer = trained_tokenizer()
    text = "<so>What is the weather?</so>Fine."
    form = {"type": "regex", "pattern": re.escape(text)}
    grammar = compile_format(form, GrammarVocabulary({}, 512), strict=False, styles={})
    all_pieces = {
        token_id: tokenizer.decode([token_id]).encode()
        for token_id in range(tokenizer.get_vocab_size())
    }
    limit = ReasoningBudget(
        max_tokens=num_reasoning,
        end_token_ids=tuple(tokenizer.encode("</so>").ids),
        starts=(b"<so>",),
        ends=(b"</so>",),
        pieces={
            token_id: piece
            for token_id, piece in all_pieces.items()
            if piece and piece in b"<so></so>"
        },
        is_open=False,
    )
    request = make_request(
        PROMPT,
        grammar=grammar,
        eos_token_ids=(special_ids()["<|im_end|>"],),
        max_tokens=99,
        num_logprobs=num_logprobs,
    )
    engine = EngineCore(FakeRunner(vocab_size=512, max_model_len=256), grammars=compiler)

    result = run_alone(engine, msgspec.structs.replace(request, reasoning_budget=limit))[0]

    assert (result.finish_reason, tokenizer.decode(result.token_ids)) == (FinishReason.STOP, text)
