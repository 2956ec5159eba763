"""Chooses the format of a model's output: by name, by its chat template or by its
`response_template`.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ouzel.errors import ModelLoadError
from ouzel.parsers.bare_calls import BareCalls, BareCallsParser
from ouzel.parsers.base import Family, Parser, new_call_id
from ouzel.parsers.custom_calls import CustomCallsParser
from ouzel.parsers.families.deepseek import DEEPSEEK_V3, DEEPSEEK_V31
from ouzel.parsers.families.gemma4 import FUNCTION_GEMMA, GEMMA4
from ouzel.parsers.families.glm45 import GLM45, GLM_XML
from ouzel.parsers.families.gpt_oss import GPT_OSS
from ouzel.parsers.families.granite import GRANITE, GRANITE_33
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.families.kimi_k2 import KIMI, KIMI_K2
from ouzel.parsers.families.llama3_json import LLAMA3_JSON
from ouzel.parsers.families.minicpm5 import MINICPM5, MINICPM_XML
from ouzel.parsers.families.minimax_m2 import MINIMAX_M2, MINIMAX_XML
from ouzel.parsers.families.mistral import DEVSTRAL, MISTRAL
from ouzel.parsers.families.muse_glimmer import ATEM_XML, MUSE_GLIMMER
from ouzel.parsers.families.phi4 import PHI4, PHI4_MINI
from ouzel.parsers.families.pythonic import LFM2, LLAMA4, OLMO3, PYTHONIC
from ouzel.parsers.families.qwen3_coder import QWEN3_CODER, QWEN_XML
from ouzel.parsers.plain import PlainParser
from ouzel.parsers.response_template import (
    ResponseTemplate,
    UnreadableTemplate,
    read_response_template,
)
from ouzel.parsers.templated_parser import RESPONSE_TEMPLATE, make_templated_family
from ouzel.parsers.thinking import THINK_TAGS, ThinkingParser
from ouzel.types.tools import FunctionTool

logger = logging.getLogger(__name__)

THINKING_ONLY = Family(
    names=("think", "deepseek_r1", "qwq"),
    matches=lambda template: THINK_TAGS.start in template or THINK_TAGS.end in template,
    reasoning=THINK_TAGS,
)

# The first family that matches a chat template is used.
FAMILIES: tuple[Family, ...] = (
    GPT_OSS,
    MUSE_GLIMMER,
    GEMMA4,
    FUNCTION_GEMMA,
    QWEN3_CODER,
    GLM45,
    MINICPM5,
    MINIMAX_M2,
    LFM2,
    OLMO3,
    LLAMA4,
    PYTHONIC,
    PHI4,
    PHI4_MINI,
    DEVSTRAL,
    MISTRAL,
    LLAMA3_JSON,
    DEEPSEEK_V3,
    DEEPSEEK_V31,
    KIMI_K2,
    GRANITE,
    GRANITE_33,
    HERMES,
    KIMI,
    THINKING_ONLY,
)

PARAMETER_STYLES = {
    marks.style: marks for marks in (QWEN_XML, GLM_XML, MINICPM_XML, MINIMAX_XML, ATEM_XML)
}
"""Parameter marks by the name that a format may give as the `style` of a schema."""

AUTO, NONE = "auto", "none"


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """Names the families that describe how one model writes calls and reasoning; None: it writes
    none.
    """

    calls: Family | None = None
    reasoning: Family | None = None
    # a control token that begins a call and thereby ends the reasoning; "" if there is none
    call_mark: str = ""

    def ending_at_calls(self, control_tokens: Collection[str]) -> "OutputFormat":
        """Returns the format with a `call_mark` if calls begin with a control token, else itself.

        The end marks of the reasoning must be control tokens too: a grammar distinguishes a text
        from a token, but not a mark from another text.
        """
        calls = self.calls.calls if self.calls else None
        reasoning = self.reasoning.reasoning if self.reasoning else None
        if calls is None or reasoning is None or self.is_interleaved:
            return self
        if not {reasoning.end, *reasoning.other_ends} <= set(control_tokens):
            return self
        marks = [mark for mark in control_tokens if mark and calls.trigger.startswith(mark)]
        return replace(self, call_mark=max(marks, key=len, default=""))

    def make_parser(
        self,
        tools: Sequence[FunctionTool],
        prompt_text: str,
        *,
        continues_prompt: bool = False,
        bare_calls: BareCalls | None = None,
    ) -> Parser:
        """Makes the parser of one choice. Without tools, nothing is a call.

        With `continues_prompt`, the prompt contains the beginning of the answer. `bare_calls`
        describes calls that the whole answer may consist of.
        """
        parser = self._make_parser(tools, prompt_text, continues_prompt=continues_prompt)
        if bare_calls is not None:
            calls = self.calls.calls if self.calls else None
            parser = BareCallsParser(
                parser, bare_calls, calls.make_call_id if calls else new_call_id
            )
        custom_names = {tool.name for tool in tools if tool.is_custom}
        return CustomCallsParser(parser, custom_names) if custom_names else parser

    def _make_parser(
        self, tools: Sequence[FunctionTool], prompt_text: str, *, continues_prompt: bool
    ) -> Parser:
        for family in (self.reasoning, self.calls):
            if family is not None and family.interleaved is not None:
                return family.interleaved(tools, prompt_text)
        calls = self.calls.calls if self.calls else None
        parser = calls.make_parser(tools) if calls and tools else PlainParser()
        marks = self.reasoning.reasoning if self.reasoning else None
        if marks is None:
            return parser
        call_mark = self.call_mark if tools else ""
        return ThinkingParser(
            marks, parser, prompt_text, continues_prompt=continues_prompt, call_mark=call_mark
        )

    @property
    def is_interleaved(self) -> bool:
        """Tells whether reasoning may stand anywhere in an output, not only at the beginning."""
        return any(
            family is not None and family.interleaved is not None
            for family in (self.reasoning, self.calls)
        )

    @property
    def prompt_marks(self) -> frozenset[str]:
        """Returns the marks that show whether a prompt ends inside the reasoning."""
        marks = self.reasoning.reasoning if self.reasoning else None
        return frozenset(map(str.rstrip, marks.starts + marks.ends)) if marks else frozenset()

    def special_tokens(self, *, with_calls: bool) -> frozenset[str]:
        """Returns the special tokens that must not be removed from the text for the parser."""
        calls = self.calls.calls if self.calls and (with_calls or self.calls.interleaved) else None
        marks = self.reasoning.reasoning if self.reasoning else None
        call_tokens = calls.special_tokens if calls else frozenset[str]()
        return call_tokens | (marks.special_tokens if marks else frozenset())


PLAIN = OutputFormat()


def choose_output_format(
    chat_template: str,
    read_more_texts: Callable[[], str] = str,
    /,
    *,
    tool_parser: str = AUTO,
    reasoning_parser: str = AUTO,
    response_template: object = None,
) -> OutputFormat:
    """Chooses the format by the chat template ("" for none) and by the model's own
    `response_template`.

    A model reasons only if its files contain a mark of reasoning: the chat template, or else the
    texts of `read_more_texts`, which is called only if the template has none. An explicit
    `reasoning_parser` needs no mark in the files.

    A family that matches the chat template has priority over the `response_template`, because
    reading the latter is tested less. Raises ModelLoadError for an unknown parser name, and for the
    name `response_template` if the model's cannot be read.
    """
    matching = [family for family in FAMILIES if family.matches(chat_template)]
    with_calls = next((family for family in matching if _has_calls(family)), None)
    if reasoning_parser in (AUTO, RESPONSE_TEMPLATE):
        with_reasoning, reason = _choose_reasoning(matching, chat_template, read_more_texts)
    else:
        with_reasoning, reason = _find_family(reasoning_parser, "reasoning_parser"), ""
    with_calls_by_name = with_calls
    if tool_parser not in (AUTO, RESPONSE_TEMPLATE):
        with_calls_by_name = _find_family(tool_parser, "tool_parser")
    ours = OutputFormat(with_calls_by_name, with_reasoning)
    chosen = _choose_description(
        ours, response_template, tool_parser=tool_parser, reasoning_parser=reasoning_parser
    )
    if reason and chosen.reasoning is with_reasoning:
        logger.info("%s", reason)
    return chosen


def _choose_description(
    ours: OutputFormat, response_template: object, *, tool_parser: str, reasoning_parser: str
) -> OutputFormat:
    """Chooses between a known family and the model's `response_template`.

    Raises ModelLoadError if an option names the template and it is missing or cannot be streamed.
    """
    is_named = RESPONSE_TEMPLATE in (tool_parser, reasoning_parser)
    if response_template is None:
        if is_named:
            raise ModelLoadError(
                "tokenizer_config.json has no response_template "
                "(the older response_schema is not supported)"
            )
        return ours
    try:
        template = read_response_template(response_template)
    except UnreadableTemplate as error:
        if is_named:
            raise ModelLoadError(
                f"response_template cannot be streamed exactly: {error}"
            ) from error
        logger.info(
            "response_template cannot be streamed exactly: %s; using %s instead",
            error,
            _join_names(ours),
        )
        return ours
    if not is_named and ours.calls is not None:
        return ours
    chosen = _choose_by_template(
        template, ours, tool_parser=tool_parser, reasoning_parser=reasoning_parser
    )
    if chosen is not ours:
        logger.info("tool calls and reasoning are read by the model's own response_template")
    return chosen


def _choose_by_template(
    template: ResponseTemplate, ours: OutputFormat, *, tool_parser: str, reasoning_parser: str
) -> OutputFormat:
    """Replaces our families by the template's, as far as the options allow it."""
    _check_described(template, tool_parser=tool_parser, reasoning_parser=reasoning_parser)
    calls = template.calls if tool_parser in (AUTO, RESPONSE_TEMPLATE) else None
    reads_reasoning = reasoning_parser == RESPONSE_TEMPLATE or (
        reasoning_parser == AUTO and (calls is not None or ours.reasoning is None)
    )
    reasoning = template.reasoning if reads_reasoning else None
    if calls is None and reasoning is None:
        return ours
    family = make_templated_family(replace(template, calls=calls, reasoning=reasoning))
    chosen = OutputFormat(family if calls else ours.calls, family if reasoning else ours.reasoning)
    if family.interleaved is None or {chosen.calls, chosen.reasoning} <= {family, None}:
        return chosen
    if calls and reasoning_parser == AUTO:
        return OutputFormat(family)
    if RESPONSE_TEMPLATE not in (tool_parser, reasoning_parser):
        return ours
    raise ModelLoadError(
        f"{RESPONSE_TEMPLATE} reads tool calls and reasoning together: tool_parser and "
        f"reasoning_parser must both be {RESPONSE_TEMPLATE}, or one of them {NONE}, "
        f"given {tool_parser!r} and {reasoning_parser!r}"
    )


def _check_described(
    template: ResponseTemplate, *, tool_parser: str, reasoning_parser: str
) -> None:
    if (tool_parser, template.calls) == (RESPONSE_TEMPLATE, None):
        raise ModelLoadError(
            "tool_parser is response_template, which describes no tool calls for this model"
        )
    if (reasoning_parser, template.reasoning) == (RESPONSE_TEMPLATE, None):
        raise ModelLoadError(
            "reasoning_parser is response_template, which describes no reasoning for this model"
        )


def _join_names(chosen: OutputFormat) -> str:
    families = (family for family in (chosen.calls, chosen.reasoning) if family)
    return " and ".join(dict.fromkeys(family.names[0] for family in families)) or NONE


def _has_calls(family: Family) -> bool:
    return family.calls is not None or family.interleaved is not None


def _has_reasoning(family: Family) -> bool:
    return family.reasoning is not None or family.interleaved is not None


def _choose_reasoning(
    matching: Sequence[Family], chat_template: str, read_more_texts: Callable[[], str]
) -> tuple[Family | None, str]:
    """Returns the first family with a mark in the model's files, or None, and the reason for the
    log.

    The marks decide for two reasons: models of one family may reason in the marks of another
    (Granite 3.3, Magistral), and many models write the calls of a family that reasons but never
    reason (Qwen 2.5, Hermes 3).
    """
    reasoning = [family for family in matching if _has_reasoning(family)]
    if not reasoning:
        return None, ""
    for family in reasoning:
        if _knows_marks(family, chat_template):
            reason = f"reasoning is read as {family.names[0]}: the chat template has its marks"
            return family, reason
    more_texts = read_more_texts()
    for family in reasoning:
        if _knows_marks(family, more_texts):
            name = family.names[0]
            reason = f"reasoning is read as {name}: the tokenizer or a rendered chat has its marks"
            return family, reason
    marks = ", ".join(
        dict.fromkeys(family.reasoning.start.strip() for family in reasoning if family.reasoning)
    )
    return None, (
        f"no reasoning is read: neither the chat template nor the tokenizer has one of its marks "
        f"({marks}); use --reasoning-parser NAME to read it anyway"
    )


def _knows_marks(family: Family, text: str) -> bool:
    marks = family.reasoning
    if family.interleaved is not None or marks is None:
        return True
    texts = {*marks.special_tokens, *map(str.strip, (*marks.starts, marks.end, *marks.other_ends))}
    return any(mark in text for mark in texts)


def _find_family(name: str, option: str) -> Family | None:
    if name == NONE:
        return None
    has = _has_calls if option == "tool_parser" else _has_reasoning
    fitting = [family for family in FAMILIES if has(family)]
    for family in fitting:
        if name in family.names:
            return family
    known = ", ".join([AUTO, NONE, RESPONSE_TEMPLATE, *(family.names[0] for family in fitting)])
    raise ModelLoadError(f"{option} must be one of {known}, given {name!r}")
