"""Tests JSON schemas through the engine at temperature 1.

Outputs are valid, and the same whether the engine appends forced tokens or samples them.
"""

from collections.abc import Iterator

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from tests.engine.requests import Result, make_request, run_alone
from tests.grammar.runs import compile_text, end_id
from tests.grammar.schemas import CASES
from tests.grammar.schemas.cases import Case
from tests.grammar.tokenizers import grammar_tokenizer, trained_tokenizer
from tests.grammar.validity import exactly, make_validator

VOCAB_SIZE = 512
SAMPLE = CASES[3::6]


@pytest.fixture(scope="module")
def compiler() -> Iterator[GrammarCompiler]:
    compiler = GrammarCompiler(grammar_tokenizer(VOCAB_SIZE))
    yield compiler
    compiler.close()


def make_schema_request(case: Case, *, num_logprobs: int | None) -> EngineRequest:
    """Makes a request that prefers to end. With logprobs every token takes a step."""
    ends = [*trained_tokenizer().encode('"]}').ids, end_id()]
    return make_request(
        trained_tokenizer().encode("The weather is").ids,
        grammar=compile_text({"type": "json_schema", "json_schema": case.schema}),
        eos_token_ids=(end_id(),),
        max_tokens=400,
        temperature=1.0,
        seed=7,
        logit_bias=tuple((token_id, 4.0) for token_id in ends),
        num_logprobs=num_logprobs,
    )


def run_request(compiler: GrammarCompiler, request: EngineRequest) -> Result:
    runner = FakeRunner(vocab_size=VOCAB_SIZE, max_model_len=512, num_blocks=128)
    return run_alone(EngineCore(runner, grammars=compiler), request)[0]


@pytest.mark.parametrize("case", SAMPLE, ids=[case.name for case in SAMPLE])
def test_the_output_is_valid_and_forcing_tokens_changes_nothing(
    compiler: GrammarCompiler, case: Case
) -> None:
    forced = run_request(compiler, make_schema_request(case, num_logprobs=None))
    stepwise = run_request(compiler, make_schema_request(case, num_logprobs=0))

    assert forced.token_ids == stepwise.token_ids
    assert forced.finish_reason is FinishReason.STOP
    written = [token_id for token_id in forced.token_ids if token_id != end_id()]
    make_validator(case.schema).validate(
        exactly(trained_tokenizer().decode(written, skip_special_tokens=False))
    )
