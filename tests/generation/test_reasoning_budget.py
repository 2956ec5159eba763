"""The budget ends the reasoning of every family and changes nothing before.

The engine notices an end of the reasoning in any tokens.
"""

import random
from itertools import count

import pytest
import tokenizers
from tokenizers import models

from ouzel.backends.fake import FakeEngine
from ouzel.engine.state.reasoning_limit import ReasoningLimit
from ouzel.generation.reasoning_budget import reasoning_budget
from ouzel.parsers.base import Reasoning, ReasoningDelta
from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.sampling import SamplingParams
from ouzel.tokenizer.base import Tokenizer
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from tests.api.byte_tokens import END, byte_alphabet, byte_tokenizer

NAMES = [family.names[0] for family in FAMILIES if family.reasoning is not None]
THOUGHT = "I think so, or not."  # no part of it ends with the beginning of a mark
REST = "Yes."
_ids = count()


def make_format(name: str) -> tuple[OutputFormat, Reasoning]:
    [family] = [family for family in FAMILIES if family.names[0] == name]
    assert family.reasoning is not None
    return OutputFormat(family, family), family.reasoning


def generate_within(
    num_tokens: int,
    script: str,
    output_format: OutputFormat,
    prompt_text: str,
    tokenizer: Tokenizer,
) -> str:
    """Returns the output of an engine whose model follows the script, within the budget."""
    script_ids = tokenizer.encode(script, add_special_tokens=False)
    budget = reasoning_budget(
        num_tokens,
        output_format=output_format,
        tokenizer=tokenizer,
        prompt_text=prompt_text,
        continues_prompt=False,
    )
    engine = FakeEngine(
        script=lambda _, position: script_ids[position] if position < len(script_ids) else END
    )
    engine.add(
        EngineRequest(
            request_id=f"r{next(_ids)}",
            prompt_token_ids=[1],
            params=SamplingParams(max_tokens=500),
            eos_token_ids=(END,),
            reasoning_budget=budget,
        )
    )
    token_ids = [
        token_id
        for step in iter(engine.step, [])
        for output in step
        for token_id in output.token_ids
    ]
    return tokenizer.decode(token_ids[:-1], skip_special_tokens=False)


def parse_reasoning(text: str, output_format: OutputFormat, prompt_text: str) -> str:
    parser = output_format.make_parser((), prompt_text)
    deltas = parser.feed(text) + parser.finish(FinishReason.STOP)
    return "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))


@pytest.mark.parametrize("are_tokens", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_each_family_reasons_up_to_the_budget(name: str, are_tokens: bool) -> None:
    output_format, marks = make_format(name)
    tokenizer = byte_tokenizer(*sorted(marks.special_tokens) if are_tokens else ())
    answer = f"{THOUGHT}{marks.end}{marks.answer_start}{REST}"
    end_len = len(tokenizer.encode(marks.end, add_special_tokens=False))
    numbers = random.Random(name)
    for prompt_end, script in ((marks.start, answer), ("", marks.start + answer)):
        prompt_text = f"Hi<|start|>assistant{prompt_end}"
        begin = min((len(start) for start in marks.starts if script.startswith(start)), default=0)
        enough = script.index(marks.end) - begin + end_len
        for num_tokens in (0, 1, *numbers.sample(range(2, len(THOUGHT)), 4), len(THOUGHT)):
            said = generate_within(num_tokens, script, output_format, prompt_text, tokenizer)
            assert said.startswith(script[: begin + num_tokens] + marks.end)
            thought = script[begin : begin + num_tokens].lstrip("\n")
            assert parse_reasoning(said, output_format, prompt_text).startswith(thought)
        assert generate_within(enough, script, output_format, prompt_text, tokenizer) == script


def test_an_end_is_seen_in_any_tokens() -> None:
    text = "hm.</think>\n\nYes"
    pieces = sorted(
        {text[start:end] for start in range(len(text)) for end in range(start + 1, len(text) + 1)}
    )
    alphabet = byte_alphabet()
    spelled = ["".join(alphabet[byte] for byte in piece.encode()) for piece in pieces]
    library_tokenizer = tokenizers.Tokenizer(
        models.BPE({each: number for number, each in enumerate(spelled)}, [])
    )
    library_tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = HuggingFaceTokenizer(library_tokenizer, {})
    output_format = OutputFormat(reasoning=make_format("think")[0].reasoning)
    numbers = random.Random(7)
    for _ in range(300):
        cuts = sorted(numbers.sample(range(1, len(text)), numbers.randint(0, 12)))
        words = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        num_before = next(
            num for num in range(1, len(words) + 1) if THINK_TAGS.end in "".join(words[:num])
        )
        budget = reasoning_budget(
            num_before,
            output_format=output_format,
            tokenizer=tokenizer,
            prompt_text="<think>",
            continues_prompt=False,
        )
        assert budget is not None
        limit, token_ids = ReasoningLimit(budget), list[int]()
        for word in [*words, *words[:1] * 50]:
            token_ids.append(pieces.index(word))
            limit.note(token_ids)
            assert limit.due == (), words
