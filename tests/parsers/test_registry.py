"""The choice of a family."""

import pytest

from ouzel.errors import ModelLoadError
from ouzel.parsers.hermes import HERMES
from ouzel.parsers.registry import FAMILIES, THINKING_ONLY, OutputFormat, choose_output_format
from ouzel.types import FunctionTool
from tests.parsers.cutting import Folded, parse


def test_a_template_chooses() -> None:
    assert choose_output_format("<tool_call></tool_call>") == OutputFormat(HERMES, HERMES)
    assert choose_output_format("Hello") == OutputFormat()
    assert choose_output_format("") == OutputFormat()


def test_a_name_beats_the_template() -> None:
    chosen = choose_output_format("", tool_parser="hermes3", reasoning_parser="deepseek_r1")
    assert chosen.calls is HERMES
    assert chosen.reasoning is not None and chosen.reasoning.calls is None
    assert (
        choose_output_format("<tool_call></tool_call>", tool_parser="none", reasoning_parser="none") == OutputFormat()
    )


@pytest.mark.parametrize("option", ["tool_parser", "reasoning_parser"])
def test_an_unknown_name_is_refused(option: str) -> None:
    with pytest.raises(
        ModelLoadError, match=f"{option} must be one of auto, none, response_template, .*hermes.*, given 'wonder'"
    ):
        choose_output_format("", **{option: "wonder"})


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("hermes3", "hermes"),
        ("qwen25", "hermes"),
        ("llama3", "llama3_json"),
        ("phi4_mini_json", "phi4"),
        ("granite4", "hermes"),
        ("deepseekv31", "deepseek_v31"),
        ("mistral", "mistral"),
        ("devstral", "devstral"),
        ("kimi_k2", "kimi_k2"),
    ],
)
def test_names_of_other_servers(name: str, family: str) -> None:
    chosen = choose_output_format("", tool_parser=name).calls
    assert chosen is not None and chosen.names[0] == family


@pytest.mark.parametrize(
    ("template", "calls", "reasoning"),
    [
        ("functools [TOOL_CALLS]", "phi4", "mistral"),
        ("[TOOL_CALLS] [ARGS] [THINK]", "devstral", "devstral"),
        ("[TOOL_CALLS] <|python_tag|>", "mistral", "mistral"),
        ("<|python_tag|> <tool_call></tool_call>", "llama3_json", "hermes"),
        ("<tool_call></tool_call> <think>", "hermes", "hermes"),
        ("content.split('</think>')", None, "think"),
    ],
)
def test_the_first_family_that_matches_counts(template: str, calls: str | None, reasoning: str | None) -> None:
    chosen = choose_output_format(template)
    assert (chosen.calls and chosen.calls.names[0]) == calls
    assert (chosen.reasoning and chosen.reasoning.names[0]) == reasoning


def test_names_are_unique() -> None:
    names = [name for family in FAMILIES for name in family.names]
    assert len(names) == len(set(names))


def test_without_tools_nothing_is_a_call() -> None:
    text = '<think>x</think><tool_call>{"name": "f"}</tool_call>'
    chosen = OutputFormat(HERMES, HERMES)
    without = parse(lambda: chosen.make_parser((), ""), [text])
    assert without == Folded('<tool_call>{"name": "f"}</tool_call>', "x")
    assert parse(lambda: chosen.make_parser((FunctionTool("f"),), ""), [text]) == Folded("", "x", [("f", "{}")])
    assert chosen.special_tokens(with_calls=False) == {"<think>", "</think>"}


@pytest.mark.parametrize(
    ("prompt_text", "folded"),
    [
        ("<think>\nA city", Folded("No.", " in Finland.")),
        ("What is <think>? <think>\nA </think>\n\nIt", Folded(" in Finland.\n</think>\n\nNo.")),
        ("It", Folded(" in Finland.\n</think>\n\nNo.")),
    ],
)
def test_an_answer_that_goes_on_may_be_inside_its_reasoning(prompt_text: str, folded: Folded) -> None:
    chosen = OutputFormat(reasoning=HERMES)
    text = " in Finland.\n</think>\n\nNo."
    assert parse(lambda: chosen.make_parser((), prompt_text, continues_prompt=True), [text]) == folded


THINKING: dict[str, object] = {"open": "<r>", "close": "</r>"}
CALLS: dict[str, object] = {
    "open": "<c>",
    "close": "</c>",
    "content": "json",
    "transform": {"type": "function", "function": "{content}"},
}
SAID = '<r>hm</r><c>{"name": "f", "arguments": {}}</c>'
HERMES_TEMPLATE = "<tool_call></tool_call>"


def described(**fields: dict[str, object]) -> dict[str, object]:
    return {"start_anchor": "<bot>", "fields": fields}


def read(chosen: OutputFormat, text: str = SAID) -> Folded:
    return parse(lambda: chosen.make_parser((FunctionTool("f"),), "<bot>"), [text])


@pytest.mark.parametrize(
    ("chat_template", "options", "fields", "text", "folded"),
    [
        ("Hello", {}, ("thinking", "tool_calls"), SAID, Folded("", "hm", [("f", "{}")])),
        ("Hello", {}, ("thinking",), SAID, Folded(SAID[9:], "hm")),
        ("<think>", {}, ("tool_calls",), SAID.replace("r>", "think>"), Folded("", "hm", [("f", "{}")])),
        ("<think>", {}, ("thinking", "tool_calls"), SAID, Folded("", "hm", [("f", "{}")])),
        ("Hello", {"reasoning_parser": "none"}, ("thinking", "tool_calls"), SAID, Folded(SAID[:9], "", [("f", "{}")])),
        ("Hello", {"tool_parser": "none"}, ("thinking", "tool_calls"), SAID, Folded(SAID[9:], "hm")),
        (HERMES_TEMPLATE, {}, ("thinking", "tool_calls"), SAID, Folded(SAID)),
        ("<think>", {}, ("thinking",), SAID, Folded(SAID)),
        (
            HERMES_TEMPLATE,
            {"tool_parser": "response_template"},
            ("thinking", "tool_calls"),
            SAID,
            Folded("", "hm", [("f", "{}")]),
        ),
        (
            HERMES_TEMPLATE,
            {"tool_parser": "response_template", "reasoning_parser": "think"},
            ("tool_calls",),
            SAID.replace("r>", "think>"),
            Folded("", "hm", [("f", "{}")]),
        ),
        (
            HERMES_TEMPLATE,
            {"tool_parser": "none", "reasoning_parser": "response_template"},
            ("thinking", "tool_calls"),
            SAID,
            Folded(SAID[9:], "hm"),
        ),
    ],
)
def test_the_models_own_description_counts_where_no_family_matches(
    chat_template: str, options: dict[str, str], fields: tuple[str, ...], text: str, folded: Folded
) -> None:
    all_fields = {"thinking": THINKING, "tool_calls": CALLS}
    response_template = described(**{name: all_fields[name] for name in fields})
    assert read(choose_output_format(chat_template, **options, response_template=response_template), text) == folded


def test_a_family_that_reads_everything_leaves_no_reasoning_to_another() -> None:
    response_template = described(tool_calls=CALLS, content={"open": "<s>", "close": "</s>"})
    chosen = choose_output_format("<think>", response_template=response_template)
    assert chosen.calls is not None and chosen.calls.interleaved is not None and chosen.reasoning is None
    beside = choose_output_format("<think>", reasoning_parser="think", response_template=response_template)
    assert beside == OutputFormat(None, THINKING_ONLY)


def test_a_description_that_cannot_be_streamed_is_logged_and_not_used(caplog: pytest.LogCaptureFixture) -> None:
    response_template = described(tool_calls=CALLS | {"content": "xml-inline"})
    with caplog.at_level("INFO"):
        assert choose_output_format(HERMES_TEMPLATE, response_template=response_template) == OutputFormat(
            HERMES, HERMES
        )
        assert choose_output_format("Hello", response_template=response_template) == OutputFormat()
    reason = "response_template cannot be streamed exactly: tool_calls are written as xml-inline; using "
    assert caplog.messages == [f"{reason}hermes instead", f"{reason}none instead"]


@pytest.mark.parametrize(
    ("options", "response_template", "message"),
    [
        ({"tool_parser": "response_template"}, None, "tokenizer_config.json has no response_template"),
        (
            {"reasoning_parser": "response_template"},
            described(thinking={"open": "<r>"}),
            "response_template cannot be streamed exactly: the reasoning needs",
        ),
        ({"tool_parser": "response_template"}, described(thinking=THINKING), "describes no tool calls"),
        ({"reasoning_parser": "response_template"}, described(tool_calls=CALLS), "describes no reasoning"),
        (
            {"tool_parser": "hermes", "reasoning_parser": "response_template"},
            described(thinking=THINKING, tool_calls=CALLS),
            "must both be response_template or one of them none, given 'hermes' and 'response_template'",
        ),
    ],
)
def test_what_is_asked_of_a_description_by_name_must_be_there(
    options: dict[str, str], response_template: object, message: str
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        choose_output_format(HERMES_TEMPLATE, **options, response_template=response_template)
