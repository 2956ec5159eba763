"""Tests beam search under a grammar: each beam has its own state of the grammar."""

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any  # sampling parameters are forwarded as they are

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from tests.engine.beam_references import (
    all_outputs,
    assert_same,
    collect_outputs,
    reference_search,
    tiny_runner,
)
from tests.engine.requests import Result, make_request, run, run_alone
from tests.grammar.tokenizers import (
    grammar_tokenizer,
    saved_for_grammars,
    special_ids,
    trained_tokenizer,
)

LETTERS = "abcd"
END = len(LETTERS)
TINY_VOCAB_SIZE = END + 1
WORDS = "a(b|cd?)*|b{1,2}|dad"
MAX_LEN = 5


@pytest.fixture(scope="module")
def tiny_compiler() -> Iterator[GrammarCompiler]:
    tokenizer = Tokenizer(models.BPE({letter: place for place, letter in enumerate(LETTERS)}, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    compiler = GrammarCompiler(saved_for_grammars(tokenizer, TINY_VOCAB_SIZE, END))
    yield compiler
    compiler.close()


def find_beginnings() -> set[str]:
    """Returns the beginnings of all words, up to MAX_LEN letters."""
    texts = (
        "".join(letters)
        for length in range(MAX_LEN + 3)
        for letters in product(LETTERS, repeat=length)
    )
    words = [text for text in texts if re.fullmatch(WORDS, text)]
    return {word[:length] for word in words for length in range(MAX_LEN + 1)}


BEGINNINGS = find_beginnings()


def may_come(output: tuple[int, ...]) -> bool:
    """Tells whether the tokens begin a word, or are a word and the end token."""
    text = "".join(LETTERS[token_id] for token_id in output if token_id != END)
    if END in output:
        return output.index(END) == len(output) - 1 and re.fullmatch(WORDS, text) is not None
    return text in BEGINNINGS


def tiny_request(prompt: list[int], max_tokens: int, **params: Any) -> EngineRequest:
    return make_request(
        prompt,
        n=params["width"],
        max_tokens=max_tokens,
        eos_token_ids=(END,),
        grammar=f"start: /{WORDS}/",
        beam_search=BeamSearchParams(**params),
    )


@pytest.mark.parametrize("length_penalty", [-1.0, 0.0, 1.0, 2.5])
@pytest.mark.parametrize("max_tokens", [1, 3, 4])
def test_a_search_wide_enough_finds_the_best_of_all_outputs_that_fit(
    tiny_compiler: GrammarCompiler, max_tokens: int, length_penalty: float
) -> None:
    request = tiny_request(
        [1, 3, 2], max_tokens, width=40, length_penalty=length_penalty, early_stopping="never"
    )
    expected = [each for each in all_outputs(request, TINY_VOCAB_SIZE) if may_come(each[0])]

    results = run_alone(EngineCore(tiny_runner(TINY_VOCAB_SIZE), grammars=tiny_compiler), request)

    assert_same(collect_outputs(results[: len(expected)]), expected)
    assert {result.finish_reason for result in results[len(expected) :]} == {FinishReason.REFUSED}


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize(
    "shape",
    [
        {"width": 1},
        {"width": 2},
        {"width": 4, "num_groups": 2, "diversity_penalty": 0.8},
        {"width": 6, "num_groups": 3, "diversity_penalty": 2.5},
    ],
)
def test_narrow_searches_and_groups_find_the_references_outputs(
    tiny_compiler: GrammarCompiler,
    shape: dict[str, Any],
    length_penalty: float,
    early_stopping: bool,
) -> None:
    for seed in range(3):
        params = {"length_penalty": length_penalty, "early_stopping": early_stopping, **shape}
        request = tiny_request([seed, 1, 2], MAX_LEN, **params)
        expected = reference_search(request, TINY_VOCAB_SIZE, may_come)[: request.n]

        results = run_alone(
            EngineCore(tiny_runner(TINY_VOCAB_SIZE), grammars=tiny_compiler), request
        )

        assert_same(collect_outputs(results[: len(expected)]), expected)


VOCAB_SIZE = 512
PROMPT = trained_tokenizer().encode("The weather is").ids
IM_END = special_ids()["<|im_end|>"]
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"enum": [True, False]},
        "b": {"type": "integer", "minimum": 0, "maximum": 999},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
}
OBJECT = f"start: %json {json.dumps(SCHEMA | {'x-guidance': {'whitespace_flexible': False}})}"


@pytest.fixture(scope="module")
def compiler() -> Iterator[GrammarCompiler]:
    compiler = GrammarCompiler(grammar_tokenizer(VOCAB_SIZE))
    yield compiler
    compiler.close()


def make_engine(compiler: GrammarCompiler, **options: Any) -> EngineCore:  # options of FakeRunner
    runner = FakeRunner(
        vocab_size=VOCAB_SIZE, **{"max_model_len": 64, "num_blocks": 128, **options}
    )
    return EngineCore(runner, grammars=compiler)


def object_request(number: int = 0, **params: Any) -> EngineRequest:
    return make_request(
        [*PROMPT, number],
        grammar=OBJECT,
        eos_token_ids=(IM_END,),
        **{"n": 3, "max_tokens": 30, "beam_search": BeamSearchParams(width=4), **params},
    )


def decode_objects(results: list[Result]) -> list[dict[str, object]]:
    return [json.loads(trained_tokenizer().decode(result.token_ids)) for result in results]


@pytest.mark.parametrize("params", [{}, {"num_logprobs": 2}, {"ignore_eos": True}])
def test_every_beam_obeys_the_schema(compiler: GrammarCompiler, params: dict[str, Any]) -> None:
    results = run_alone(make_engine(compiler), object_request(**params))

    assert [result.finish_reason for result in results] == [FinishReason.STOP] * 3
    found = decode_objects(results)
    assert all(each.keys() == {"a", "b"} and each["b"] in range(1000) for each in found)
    assert len({json.dumps(each) for each in found}) == 3
    assert [result.token_ids[-1] for result in results] == [IM_END] * 3
    scores = [result.final.score or 0.0 for result in results]
    assert scores == sorted(scores, reverse=True)


def test_preempted_searches_find_the_same(compiler: GrammarCompiler) -> None:
    requests = [object_request(number) for number in range(8)]
    alone = [collect_outputs(run_alone(make_engine(compiler), request)) for request in requests]
    short = make_engine(compiler, num_blocks=36, max_num_seqs=32, max_num_batched_tokens=32)

    results = run(short, requests)

    assert short.stats().num_preemptions > 0
    assert short.stats().num_used_blocks == 0
    for request, expected in zip(requests, alone, strict=True):
        assert (
            collect_outputs([results[request.request_id, index] for index in range(3)]) == expected
        )


def test_a_choice_that_leaves_while_the_grammar_is_compiled_leaves_the_others_their_ranks(
    compiler: GrammarCompiler,
) -> None:
    request = object_request(1)
    expected = collect_outputs(run_alone(make_engine(compiler), request))
    engine = make_engine(compiler)
    engine.add(request)
    engine.abort(request.request_id, 0)

    results = run(engine)

    assert results[request.request_id, 0].finish_reason is FinishReason.ABORT
    assert collect_outputs([results[request.request_id, index] for index in (1, 2)]) == expected[1:]
    assert engine.stats().num_used_blocks == engine.stats().num_running == 0


def test_a_search_without_any_output_that_fits_is_refused(compiler: GrammarCompiler) -> None:
    results = run_alone(make_engine(compiler), object_request(min_tokens=29))

    assert [result.finish_reason for result in results] == [FinishReason.REFUSED] * 3
    assert results[0].final.error == "the beam search found 0 outputs only"
