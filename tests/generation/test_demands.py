"""Tests the grammars of a request's tools and form, for each family.

No call is required here. The prompt may have begun or ended the reasoning before the output.
"""

from dataclasses import dataclass
from functools import partial

import msgspec
import pytest

from ouzel.generation.demands import OutputForm, ToolUse, make_grammar
from ouzel.generation.lenient_forms import honour_forms
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.base import Family, ReasoningStage
from ouzel.parsers.families.gpt_oss import GPT_OSS
from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.parsers.response_template import read_response_template
from ouzel.parsers.templated_parser import make_templated_family
from ouzel.types.engine_request import Grammar
from ouzel.types.tools import FunctionTool
from tests.grammar.runs import accepts, started_from
from tests.grammar.runs import vocabulary as trained_vocabulary
from tests.parsers.cutting import Folded, parse

TOOL = FunctionTool(
    "get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}
)
AUTO = ToolUse(tools=(TOOL,), are_all=True, must_call=False, is_parallel=True, guides_all=False)
GUIDED = msgspec.structs.replace(AUTO, guides_all=True)
REQUIRED = msgspec.structs.replace(AUTO, must_call=True)
NONE = ToolUse(tools=(), are_all=False, must_call=False, is_parallel=False, guides_all=False)
WITH_CALLS = {family.names[0]: family for family in FAMILIES if family.calls is not None}
UNGUARDED = {  # families without guards under tool_choice "auto"
    "llama3_json": "calls begin like any JSON",
    "pythonic": "calls begin like any list",
    "phi4": "calls begin with a word",
    "gpt_oss": "reasoning and calls begin with the same mark",
    "granite": "reasoning begins with words",
    "kimi_k2": "calls may break off the reasoning",
    "gemma4": "arguments are no JSON",
    "functiongemma": "arguments are no JSON",
    "lfm2": "arguments are no JSON",
    "olmo3": "arguments are no JSON",
    "llama4_pythonic": "arguments are no JSON",
    "qwen3_coder": "arguments are no JSON",
    "glm45": "arguments are no JSON",
    "minicpm5": "arguments are no JSON",
    "minimax_m2": "arguments are no JSON",
    "muse_glimmer": "arguments are no JSON",
}


def make_family_vocabulary(family: Family) -> GrammarVocabulary:
    marks = OutputFormat(calls=family, reasoning=family).special_tokens(with_calls=True)
    return GrammarVocabulary(
        {mark: 10 + place for place, mark in enumerate(sorted(marks))}, 1000, (5,)
    )


def make_tools_grammar(
    use: ToolUse, family: Family, *, guards_calls: bool = True
) -> Grammar | None:
    return make_grammar(
        use,
        None,
        output_format=OutputFormat(calls=family, reasoning=family),
        vocabulary=make_family_vocabulary(family),
        prompt_text="",
        guards_calls=guards_calls,
    )


@pytest.mark.parametrize("name", WITH_CALLS)
def test_calls_are_guarded_if_they_begin_with_their_own_token_and_hold_json(
    name: str,
) -> None:
    assert (make_tools_grammar(AUTO, WITH_CALLS[name]) is None) == (name in UNGUARDED)


@pytest.mark.parametrize("use", [AUTO, NONE])
def test_nothing_is_guarded_if_guards_are_off(use: ToolUse) -> None:
    assert make_tools_grammar(use, WITH_CALLS["hermes"], guards_calls=False) is None


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45"])
def test_no_call_can_begin_if_no_tool_may_be_called(name: str) -> None:
    family = WITH_CALLS[name]
    assert family.calls is not None
    forbidding, possible = make_tools_grammar(NONE, family), make_tools_grammar(GUIDED, family)
    assert forbidding is not None
    assert possible is not None
    trigger = f"<[{make_family_vocabulary(family).special_ids[family.calls.trigger]}]>"
    assert trigger in possible.text
    assert trigger not in forbidding.text


JSON = '{"a": 1}'
FORM = OutputForm({"type": "json_schema", "json_schema": {"type": "object"}}, "response_format")
TEXT = "<|user|>Think between <think> and </think>!<|assistant|>"


@dataclass(frozen=True)
class PromptEnd:
    """The end of a prompt, written by a template or by a text to continue.

    It decides where the output begins: in the reasoning, before it or after it.
    """

    family: Family
    text: str
    stage: ReasoningStage
    continues_prompt: bool = False


def list_prompt_ends(family: Family) -> list[PromptEnd]:
    marks = family.reasoning
    assert marks is not None
    starts = (marks.start, *marks.other_starts)
    ends = (marks.end, *marks.other_ends, *marks.ended_by)
    found = [
        PromptEnd(family, "", ReasoningStage.BEFORE),
        PromptEnd(family, "It", ReasoningStage.OVER, True),
    ]
    for start in starts:
        for text, continues in (
            (start, False),
            (start + "\n", False),
            (start, True),
            (start + "\nhm", True),
        ):
            found.append(PromptEnd(family, text, ReasoningStage.OPEN, continues))
    for start in ("", *starts):
        for end in ends:
            for text, continues in (("", False), ("\n\n", False), ("", True), (" It", True)):
                found.append(
                    PromptEnd(family, f"{start}\n{end}{text}", ReasoningStage.OVER, continues)
                )
    return found


HARMONY = "<|start|>user<|message|>Hi<|end|><|start|>assistant"
ANALYSIS, FINAL = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
CALL = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{}"
HARMONY_ENDS = [
    (HARMONY, ReasoningStage.BEFORE),
    (f"{HARMONY}{ANALYSIS}hm<|end|><|start|>assistant", ReasoningStage.BEFORE),
    (f"{HARMONY}{ANALYSIS}hm<|end|>", ReasoningStage.BEFORE),
    (HARMONY + ANALYSIS, ReasoningStage.OPEN),
    (f"{HARMONY}{ANALYSIS}hm", ReasoningStage.OPEN),
    (f"{HARMONY}{FINAL}So.<|end|><|start|>assistant{ANALYSIS}", ReasoningStage.OPEN),
    (f"{HARMONY}<|channel|>analysis to=python<|message|>1", ReasoningStage.OPEN),
    (HARMONY + FINAL, ReasoningStage.OVER),
    (f"{HARMONY}{FINAL}It", ReasoningStage.OVER),
    (f"{HARMONY}{ANALYSIS}hm<|end|><|channel|>commentary<|message|>", ReasoningStage.OVER),
]
DESCRIBED = make_templated_family(
    read_response_template(
        {
            "start_anchor": "<bot>",
            "fields": {
                "thinking": {"open": ["<r>", "<t>"], "close": ["</r>", "</t>"]},
                "content": {},
            },
        }
    )
)
DESCRIBED_ENDS = [
    ("<bot>", ReasoningStage.BEFORE),
    ("<r>hm<bot>\n", ReasoningStage.BEFORE),
    ("no anchor <r>", ReasoningStage.BEFORE),
    *(
        (f"<bot>{start}{text}", ReasoningStage.OPEN)
        for start in ("<r>", "<t>")
        for text in ("", "\n", "\nhm", "hm</")
    ),
    *(
        (f"<bot>{start}hm{end}", ReasoningStage.OVER)
        for start in ("<r>", "<t>")
        for end in ("</r>", "</t>\n\n")
    ),
    ("<bot>It", ReasoningStage.OVER),
    ("<bot><r>hm</r>It", ReasoningStage.OVER),
]
WITH_REASONING = {  # one family for each set of marks
    family.reasoning: family
    for family in FAMILIES
    if family.reasoning is not None and family.interleaved is None
}
PROMPT_ENDS = [end for family in WITH_REASONING.values() for end in list_prompt_ends(family)] + [
    PromptEnd(family, text, stage, continues)
    for family, ends in ((GPT_OSS, HARMONY_ENDS), (DESCRIBED, DESCRIBED_ENDS))
    for text, stage in ends
    for continues in (False, True)
]


@pytest.mark.parametrize("end", PROMPT_ENDS, ids=lambda end: f"{end.family.names[0]}-{end.text!r}")
def test_the_grammar_and_the_parser_agree_on_the_begin_of_the_output(end: PromptEnd) -> None:
    output_format, marks = OutputFormat(reasoning=end.family), end.family.reasoning
    assert marks is not None
    demanded = make_grammar(
        None,
        FORM,
        output_format=output_format,
        vocabulary=trained_vocabulary(),
        prompt_text=TEXT + end.text,
        continues_prompt=end.continues_prompt,
    )
    assert demanded is not None
    session = started_from(demanded.text)
    gap = marks.answer_start or "\n"
    plain = JSON if end.stage is ReasoningStage.OVER else marks.answer_start + JSON
    inside = [f"hm{mark}{gap}{JSON}" for mark in (marks.end, *marks.other_ends)]
    whole = [marks.start + text for text in inside]
    broken = [
        f"{start}hm{mark}x{marks.end}\n{JSON}"
        for start in ("", marks.start)
        for mark in marks.ended_by
    ]

    def parse_whole(text: str) -> Folded:
        make_parser = partial(
            output_format.make_parser, (), TEXT + end.text, continues_prompt=end.continues_prompt
        )
        folded = parse(make_parser, list(text))
        assert folded == parse(make_parser, [text])
        return folded

    admitted = {
        text: parse_whole(text)
        for text in (*inside, *whole, *broken, plain)
        if accepts(session, text)
    }

    assert marks.stage_after(TEXT + end.text, continues_prompt=end.continues_prompt) is end.stage
    match end.stage:
        case ReasoningStage.BEFORE:
            assert admitted == dict.fromkeys(whole, Folded(JSON, "hm")) | {plain: Folded(JSON)}
        case ReasoningStage.OPEN:
            for text in whole:  # the start mark may count as text here
                folded = admitted.pop(text, Folded(JSON, "hm"))
                assert (folded.content, folded.reasoning[-2:]) == (JSON, "hm")
            assert admitted == dict.fromkeys(inside, Folded(JSON, "hm"))
        case ReasoningStage.OVER:
            assert admitted == {plain: Folded(JSON)}


@pytest.mark.parametrize(
    ("use", "admitted", "refused"),
    [
        (
            GUIDED,
            ["<|channel|>final<|message|>Hi", CALL, f"{CALL}<|end|><|start|>assistant{CALL}"],
            ["Hi", f"{CALL}Hi"],
        ),
        (REQUIRED, [CALL], ["<|channel|>final<|message|>Hi", "Hi"]),
    ],
)
@pytest.mark.parametrize("before", ["", f"{ANALYSIS}hm<|end|><|start|>assistant"])
def test_an_answer_of_gpt_oss_is_a_message_or_calls(
    use: ToolUse, admitted: list[str], refused: list[str], before: str
) -> None:
    output_format = OutputFormat(GPT_OSS, GPT_OSS)
    demanded = make_grammar(
        use, None, output_format=output_format, vocabulary=trained_vocabulary(), prompt_text=HARMONY
    )
    assert demanded is not None
    session = started_from(demanded.text)
    assert all(accepts(session, before + text) for text in admitted)
    assert not any(accepts(session, before + text) for text in refused)
    for text in admitted:
        folded = parse(lambda: output_format.make_parser((TOOL,), HARMONY), list(before + text))
        num_calls = text.count(CALL)
        assert folded == Folded(
            "" if num_calls else "Hi", "hm" if before else "", [("get_weather", "{}")] * num_calls
        )


HERMES_CALL = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize("use", [AUTO, GUIDED, REQUIRED])
@pytest.mark.parametrize("prompt_text", ["", "<think>"])
def test_a_call_may_come_within_the_reasoning_if_the_parser_reads_it(
    use: ToolUse, prompt_text: str
) -> None:
    hermes = OutputFormat(WITH_CALLS["hermes"], WITH_CALLS["hermes"])
    text = "<think>hm" if not prompt_text else "hm"
    for output_format in (hermes, hermes.ending_at_calls(trained_vocabulary().special_ids)):
        demanded = make_grammar(
            use,
            None,
            output_format=output_format,
            vocabulary=trained_vocabulary(),
            prompt_text=prompt_text,
            guards_calls=True,
        )
        assert demanded is not None
        session = started_from(demanded.text)
        assert accepts(session, f"{text}</think>\n\n{HERMES_CALL}")
        assert accepts(session, f"{text}{HERMES_CALL}\n{HERMES_CALL}") == bool(
            output_format.call_mark
        )
        assert not accepts(session, f"{text}</think>\n\n<tool_call>hm")
        assert not accepts(session, f"{text}<tool_call>hm")


@pytest.mark.parametrize("form", [None, FORM])
def test_many_faulty_tools_are_weakened_independently(form: OutputForm | None) -> None:
    faulty: dict[str, object] = {
        "type": "object",
        "properties": {"a": {"uniqueItems": True}, "b": {"pattern": "(?=x)"}},
    }
    tools = tuple(
        FunctionTool(f"add{number}", parameters=faulty, strict=True) for number in range(30)
    )
    nums_tools: list[int] = []

    def make(use: ToolUse | None, form: OutputForm | None) -> Grammar | None:
        nums_tools.append(0 if use is None else len(use.tools))
        family = WITH_CALLS["hermes"]
        output_format = OutputFormat(calls=family, reasoning=family)
        return make_grammar(
            use,
            form,
            output_format=output_format,
            vocabulary=make_family_vocabulary(family),
            prompt_text="",
        )

    forms = honour_forms(msgspec.structs.replace(REQUIRED, tools=(TOOL, *tools)), form, make)

    assert forms.grammar is not None
    assert len(forms.dropped) == 2 * 30  # two keywords of each
    assert nums_tools.count(31) == 2
    assert sum(nums_tools) == 2 * 31 + 1 + 4 * 30
