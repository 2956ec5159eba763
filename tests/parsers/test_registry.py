"""The registry chooses a family's parsers by the chat template."""

import pytest

from ouzel.errors import ModelLoadError
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import FAMILIES, THINKING_ONLY, OutputFormat, choose_output_format
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, parse


def test_a_template_chooses() -> None:
    assert choose_output_format("<tool_call></tool_call> <think>") == OutputFormat(HERMES, HERMES)
    assert choose_output_format("Hello") == OutputFormat()
    assert choose_output_format("") == OutputFormat()


def test_a_name_beats_the_template() -> None:
    chosen = choose_output_format("", tool_parser="hermes3", reasoning_parser="deepseek_r1")
    assert chosen.calls is HERMES
    assert chosen.reasoning is not None and chosen.reasoning.calls is None
    assert (
        choose_output_format("<tool_call></tool_call>", tool_parser="none", reasoning_parser="none")
        == OutputFormat()
    )


@pytest.mark.parametrize("option", ["tool_parser", "reasoning_parser"])
def test_an_unknown_name_is_refused(option: str) -> None:
    with pytest.raises(
        ModelLoadError,
        match=f"{option} must be one of auto, none, response_template, .*hermes.*, given 'wonder'",
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
        ("functools [TOOL_CALLS] [THINK]", "phi4", "mistral"),
        ("[TOOL_CALLS] [ARGS] [THINK]", "devstral", "devstral"),
        ("[TOOL_CALLS] <|python_tag|>", "mistral", None),
        ("<|python_tag|> <tool_call></tool_call></think>", "llama3_json", "hermes"),
        ("<tool_call></tool_call> <think>", "hermes", "hermes"),
        ("content.split('</think>')", None, "think"),
    ],
)
def test_the_first_family_that_matches_counts(
    template: str, calls: str | None, reasoning: str | None
) -> None:
    chosen = choose_output_format(template)
    assert (chosen.calls and chosen.calls.names[0]) == calls
    assert (chosen.reasoning and chosen.reasoning.names[0]) == reasoning


# The marks in the chat templates of models that reason: family -> (template, mark)
KNOWN_MARKS = {
    "gpt_oss": ("<|start|>assistant<|channel|>", "<|start|>"),
    "muse_glimmer": ("<atem:function_calls> <|eom|>", "to=self<|message|>"),
    "gemma4": ("<|tool_call>call:", "<|channel>thought"),
    "qwen3_coder": ("<parameter= </parameter> <function=", "<think>"),
    "glm45": ("<arg_key> <arg_value>", "<think></think>"),
    "minicpm5": ('<param name="', "</think>"),
    "minimax_m2": ("<minimax:tool_call>", "<think>"),
    "lfm2": ("<|tool_call_start|>", "content.split('</think>')"),
    "olmo3": ("<functions><function_calls>", "<think>"),
    "devstral": ("[TOOL_CALLS][ARGS]", "[THINK]"),
    "mistral": ("[TOOL_CALLS]", "[/THINK]"),
    "deepseek_v3": ("<｜tool▁calls▁begin｜>```json", "</think>"),
    "deepseek_v31": ("<｜tool▁calls▁begin｜>", "<think>"),
    "kimi_k2": ("<|tool_calls_section_begin|>", "<think>"),
    "granite": ("<|start_of_role|>", "write your thoughts after 'Here is my thought process:'"),
    "granite33": ("<|start_of_role|><response>", "<think></think>"),
    "hermes": ("<tool_call></tool_call>", "<think>\n\n</think>"),
    "kimi": ("◁think▷", "◁/think▷"),
    "think": ("content.split('</think>')", "</think>"),
}
# the marks themselves identify the template
MARKED_BY_THEIR_TEMPLATES = ("gpt_oss", "muse_glimmer", "kimi", "think")


def test_every_family_that_reasons_is_known_by_a_mark() -> None:
    names = {family.names[0] for family in FAMILIES if family.reasoning is not None}
    assert set(KNOWN_MARKS) == names


@pytest.mark.parametrize("name", KNOWN_MARKS)
def test_a_family_reasons_where_the_template_or_the_tokenizer_has_its_mark(name: str) -> None:
    template, mark = KNOWN_MARKS[name]
    [family] = [family for family in FAMILIES if family.names[0] == name]

    with_mark_in_template = choose_output_format(
        f"{template} {mark}", lambda: pytest.fail("not read")
    )
    with_mark_as_token = choose_output_format(template, lambda: f"<s>\n{mark}\n</s>")
    without_mark = choose_output_format(template, lambda: "<s>\n</s>")

    assert family.matches(template)
    for chosen in (with_mark_in_template, with_mark_as_token):
        assert chosen.reasoning is not None and chosen.reasoning.reasoning == family.reasoning
    assert (without_mark.reasoning is not None) == (name in MARKED_BY_THEIR_TEMPLATES)
    assert without_mark.calls is with_mark_in_template.calls


def test_the_log_says_how_it_was_decided_whether_a_model_reasons(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO"):
        choose_output_format("<tool_call></tool_call><think>")
        choose_output_format("<tool_call></tool_call>", lambda: "<think>")
        choose_output_format("<tool_call></tool_call>")
        choose_output_format("<tool_call></tool_call>", reasoning_parser="hermes")
        choose_output_format("Hello")
    assert caplog.messages == [
        "reasoning is read as hermes: the chat template has its marks",
        "reasoning is read as hermes: the tokenizer or a rendered chat has its marks",
        "no reasoning is read: neither the chat template nor the tokenizer has one of its marks "
        "(<think>); use --reasoning-parser NAME to read it anyway",
    ]


def test_an_explicit_reasoning_parser_needs_no_mark_in_the_files() -> None:
    assert choose_output_format(
        "<tool_call></tool_call>", reasoning_parser="hermes"
    ) == OutputFormat(HERMES, HERMES)


def test_names_are_unique() -> None:
    names = [name for family in FAMILIES for name in family.names]
    assert len(names) == len(set(names))


def test_without_tools_nothing_is_a_call() -> None:
    text = '<think>x</think><tool_call>{"name": "f"}</tool_call>'
    chosen = OutputFormat(HERMES, HERMES)
    without = parse(lambda: chosen.make_parser((), ""), [text])
    assert without == Folded('<tool_call>{"name": "f"}</tool_call>', "x")
    assert parse(lambda: chosen.make_parser((FunctionTool("f"),), ""), [text]) == Folded(
        "", "x", [("f", "{}")]
    )
    assert chosen.special_tokens(with_calls=False) == {"<think>", "</think>"}


@pytest.mark.parametrize(
    ("prompt_text", "folded"),
    [
        ("<think>\nA city", Folded("No.", " in Finland.")),
        ("What is <think>? <think>\nA </think>\n\nIt", Folded(" in Finland.\n</think>\n\nNo.")),
        ("It", Folded(" in Finland.\n</think>\n\nNo.")),
    ],
)
def test_an_answer_that_goes_on_may_be_inside_its_reasoning(
    prompt_text: str, folded: Folded
) -> None:
    chosen = OutputFormat(reasoning=HERMES)
    text = " in Finland.\n</think>\n\nNo."
    assert (
        parse(lambda: chosen.make_parser((), prompt_text, continues_prompt=True), [text]) == folded
    )


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
        (
            "<think>",
            {},
            ("tool_calls",),
            SAID.replace("r>", "think>"),
            Folded("", "hm", [("f", "{}")]),
        ),
        ("<think>", {}, ("thinking", "tool_calls"), SAID, Folded("", "hm", [("f", "{}")])),
        (
            "Hello",
            {"reasoning_parser": "none"},
            ("thinking", "tool_calls"),
            SAID,
            Folded(SAID[:9], "", [("f", "{}")]),
        ),
        (
            "Hello",
            {"tool_parser": "none"},
            ("thinking", "tool_calls"),
            SAID,
            Folded(SAID[9:], "hm"),
        ),
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
    assert (
        read(
            choose_output_format(chat_template, **options, response_template=response_template),
            text,
        )
        == folded
    )


def test_a_family_that_reads_everything_leaves_no_reasoning_to_another() -> None:
    response_template = described(tool_calls=CALLS, content={"open": "<s>", "close": "</s>"})
    chosen = choose_output_format("<think>", response_template=response_template)
    assert (
        chosen.calls is not None
        and chosen.calls.interleaved is not None
        and chosen.reasoning is None
    )
    beside = choose_output_format(
        "<think>", reasoning_parser="think", response_template=response_template
    )
    assert beside == OutputFormat(None, THINKING_ONLY)


def test_a_description_that_cannot_be_streamed_is_logged_and_not_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response_template = described(tool_calls=CALLS | {"content": "xml-inline"})
    with caplog.at_level("INFO"):
        assert choose_output_format(
            HERMES_TEMPLATE, response_template=response_template
        ) == OutputFormat(HERMES)
        assert choose_output_format("Hello", response_template=response_template) == OutputFormat()
    reason = (
        "response_template cannot be streamed exactly: tool_calls are written as xml-inline; using "
    )
    told = [message for message in caplog.messages if message.startswith("response_template")]
    assert told == [f"{reason}hermes instead", f"{reason}none instead"]


@pytest.mark.parametrize(
    ("options", "response_template", "message"),
    [
        (
            {"tool_parser": "response_template"},
            None,
            "tokenizer_config.json has no response_template",
        ),
        (
            {"reasoning_parser": "response_template"},
            described(thinking={"open": "<r>"}),
            "response_template cannot be streamed exactly: the reasoning needs",
        ),
        (
            {"tool_parser": "response_template"},
            described(thinking=THINKING),
            "describes no tool calls",
        ),
        (
            {"reasoning_parser": "response_template"},
            described(tool_calls=CALLS),
            "describes no reasoning",
        ),
        (
            {"tool_parser": "hermes", "reasoning_parser": "response_template"},
            described(thinking=THINKING, tool_calls=CALLS),
            (
                "must both be response_template, or one of them none, "
                "given 'hermes' and 'response_template'"
            ),
        ),
    ],
)
def test_a_description_must_have_the_parts_chosen_by_name(
    options: dict[str, str], response_template: object, message: str
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        choose_output_format(HERMES_TEMPLATE, **options, response_template=response_template)
