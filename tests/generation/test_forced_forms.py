"""A forced form ends in every family, even if the model avoids it, and its parser reads it.

The engine is Ouzel's, on a device that prefers certain tokens at every place, and never the end.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
import pytest
import tokenizers
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.generation.demands import OutputForm, ToolUse, make_grammar
from ouzel.generation.reasoning_budget import reasoning_budget
from ouzel.grammar.vocabulary import GrammarVocabulary, special_token_ids
from ouzel.parsers.base import CONTROL_SIGN, Family, ReasoningStage
from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.sampling import SamplingParams
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput
from ouzel.types.tools import FunctionTool
from tests.api.byte_tokens import END, byte_library_tokenizer
from tests.grammar.tokenizers import saved_for_grammars
from tests.parsers.cutting import parse

# the bytes that each adversary prefers; "" prefers random bytes
ADVERSARIES = (
    "an",
    "\n ",
    '{"',
    "<",
    ",1",
    "",
)
BUDGET = 9
SIGN = CONTROL_SIGN.encode(errors="surrogatepass")
MAX_TOKENS = 16000
TOOL = FunctionTool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 3}, "days": {"enum": [1, 2]}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
REQUIRED = ToolUse(tools=(TOOL,), are_all=True, must_call=True, is_parallel=True, guides_all=False)
USES: dict[str, tuple[ToolUse | None, OutputForm | None]] = {
    "required": (REQUIRED, None),
    "named": (msgspec.structs.replace(REQUIRED, is_parallel=False), None),
    "format beside tools": (
        msgspec.structs.replace(REQUIRED, must_call=False),
        OutputForm(
            {"type": "json_schema", "json_schema": {"enum": ["yes", "no"]}}, "response_format"
        ),
    ),
    "format": (
        None,
        OutputForm(
            {"type": "json_schema", "json_schema": {"enum": ["yes", "no"]}}, "response_format"
        ),
    ),
}
WITH_BLANKS = {"hermes", "qwen3_coder", "pythonic"}  # arguments in JSON, XML and Python
WITH_CALLS = {family.names[0]: family for family in FAMILIES if family.calls is not None}


class StubbornRunner(FakeRunner):
    """A runner that prefers an adversary's bytes, and never the end.

    The first token of the prompt names the adversary.
    """

    def _logits(self, context: NDArray[np.int64]) -> NDArray[np.float32]:
        logits = super()._logits(context)
        logits[list(ADVERSARIES[context[0]].encode())] += 50
        logits[END] = -100
        return logits


@dataclass(frozen=True)
class Machine:
    tokenizer: HuggingFaceTokenizer
    vocabulary: GrammarVocabulary
    engine: EngineCore
    are_marks_tokens: bool


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    marks = set[str]()
    if request.param == "marks are tokens":
        for family in FAMILIES:
            marks |= OutputFormat(family, family).special_tokens(with_calls=True)
    library: tokenizers.Tokenizer = byte_library_tokenizer(*sorted(marks))
    size = library.get_vocab_size()
    vocabulary = GrammarVocabulary(special_token_ids(json.loads(library.to_str())), size, (END,))
    compiler = GrammarCompiler(saved_for_grammars(library, size, END), timeout_s=60)
    runner = StubbornRunner(
        vocab_size=size,
        num_blocks=40000,
        block_size=32,
        max_model_len=20000,
        max_num_seqs=64,
        max_num_batched_tokens=512,
    )
    engine = EngineCore(runner, grammars=compiler)
    tokenizer = HuggingFaceTokenizer(library, {"eos_token": "<|im_end|>"})
    yield Machine(tokenizer, vocabulary, engine, are_marks_tokens=bool(marks))
    compiler.close()


def list_prompt_ends(family: Family) -> list[str]:
    marks = family.reasoning
    if marks is None:
        return [""]
    begun = f"<|start|>assistant{marks.start}"
    assert marks.stage_after(begun, continues_prompt=False) is ReasoningStage.OPEN
    return ["", begun]


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        *(("marks are tokens", name) for name in WITH_CALLS),
        *(
            pytest.param(
                "marks are text",
                name,
                marks=[]
                if name in WITH_BLANKS
                else pytest.mark.release("forced forms whose marks are text, of further families"),
            )
            for name in WITH_CALLS
        ),
    ],
    indirect=["machine"],
)
def test_a_forced_form_ends_against_the_models_preference(
    machine: Machine, name: str, before_release: bool
) -> None:
    """Before a release all adversaries run; else chance, and blanks with three families.

    The three families write arguments in different ways. Blanks appear in the JSON and in the texts
    between the marks; the grammars of these texts do not know how marks are written.
    """
    meets_blanks = machine.are_marks_tokens and name in WITH_BLANKS
    adversaries = ADVERSARIES if before_release else ("\n ", "") if meets_blanks else ("",)
    family = WITH_CALLS[name]
    output_format = OutputFormat(family, family).ending_at_calls(machine.vocabulary.special_ids)
    said = machine.tokenizer.encode("Hi", add_special_tokens=False)
    requests: dict[tuple[str, str, str], EngineRequest] = {}
    for use_name, (use, form) in USES.items():
        for prompt_text in list_prompt_ends(family):
            budget = reasoning_budget(
                BUDGET,
                output_format=output_format,
                tokenizer=machine.tokenizer,
                prompt_text=prompt_text,
                continues_prompt=False,
                has_tools=use is not None,
                is_required=False,
            )
            grammar = make_grammar(
                use,
                form,
                output_format=output_format,
                vocabulary=machine.vocabulary,
                prompt_text=prompt_text,
            )
            for adversary in adversaries:
                requests[use_name, prompt_text, adversary] = EngineRequest(
                    request_id=f"{name} {len(requests)}",
                    prompt_token_ids=[ADVERSARIES.index(adversary), *said],
                    params=SamplingParams(max_tokens=MAX_TOKENS, temperature=0),
                    eos_token_ids=(END,),
                    grammar=grammar,
                    reasoning_budget=budget,
                )
    for engine_request in requests.values():
        machine.engine.add(engine_request)
    outputs: dict[str, list[StepOutput]] = {}
    while machine.engine.has_unfinished():
        for output in machine.engine.step():
            outputs.setdefault(output.request_id, []).append(output)

    for (use_name, prompt_text, adversary), engine_request in requests.items():
        steps, what = outputs[engine_request.request_id], (use_name, prompt_text, adversary)
        token_ids = [token_id for step in steps for token_id in step.token_ids if token_id != END]
        text = machine.tokenizer.decode(token_ids, skip_special_tokens=False)
        call_token_id = machine.tokenizer.token_id(output_format.call_mark)
        pieces = [(token_id, machine.tokenizer.token_bytes(token_id)) for token_id in token_ids]
        signed = b"".join(
            SIGN + piece if token_id == call_token_id else piece for token_id, piece in pieces
        )
        assert steps[-1].finish_reason is FinishReason.STOP, (what, steps[-1].error, text[:300])
        use, _ = USES[use_name]
        tools = () if use is None else use.tools
        folded = parse(
            partial(output_format.make_parser, tools, prompt_text),
            [signed.decode(errors="surrogatepass")],
        )
        if use is not None and use.must_call:
            assert folded.calls and not folded.content.strip(), (what, text[:300])
        assert len(folded.calls) <= (1 if use_name == "named" else 32), what
        assert {name for name, _ in folded.calls} <= {TOOL.name}, what
        assert bool(folded.calls) != (folded.content.strip() in ('"yes"', '"no"')), (
            what,
            text[:300],
        )
        assert len(folded.reasoning) <= BUDGET * len("|fail|"), (what, text[:300])
