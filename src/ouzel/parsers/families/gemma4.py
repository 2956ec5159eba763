"""Gemma 4 writes an object with bare keys, and strings between special marks. FunctionGemma has
other marks.

<|channel>thought
The user asks...<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>
<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call>
"""

from collections.abc import Callable, Sequence

from ouzel.parsers.base import Calls, Family, Format, Reasoning
from ouzel.parsers.literal_reading_parser import LiteralReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import arguments_schema, json_format, named_values_format
from ouzel.types.tools import FunctionTool

_START, _END, _QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
_OTHER_START, _OTHER_END, _OTHER_QUOTE = "<start_function_call>", "<end_function_call>", "<escape>"
_CALL = "call:"
_PLAIN_STRING_KEYWORDS = frozenset(
    {"type", "title", "description", "default", "examples", "maxLength"}
)


class Gemma4Parser(LiteralReadingParser):
    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        super().__init__(tools, raw_quotes=(_QUOTE, _OTHER_QUOTE))

    def read(self) -> Reading[None]:
        yield from self.read_marked([_START, _OTHER_START], self._read_calls)

    def _read_calls(self, start: str) -> Reading[bool]:
        num_calls = 0
        while (yield from self._read_call()):
            num_calls += 1
        if not num_calls:
            return False
        self.rewind()
        yield from self.pass_end(_END, _OTHER_END)
        return True

    def _read_call(self) -> Reading[bool]:
        yield from self.pass_whitespace()
        if (yield from self.passes(_CALL)) is None:
            return False
        name = yield from self.pass_name()
        brace = self._at
        if not name or (yield from self.passes("{")) is None:
            return False
        self.open_call(name)
        yield from self.pass_whitespace()
        if (yield from self.peek()) == '"':  # a JSON object
            self._at = brace
            yield from self.read_object()
        else:
            yield from self.read_named(":", "}")
        return True


def _call_format(start: str, end: str, mark: str) -> Callable[[FunctionTool], Format]:
    def call_format(tool: FunctionTool) -> Format:
        whole = json_format(arguments_schema(tool))
        content = named_values_format(
            tool,
            sign=":",
            comma=",",
            whole=whole,
            value_format=lambda *schema: _value(mark, *schema),
        )
        opening, closing = ("", "") if content is whole else ("{", "}")
        begin = f"{start}{_CALL}{tool.name}{opening}"
        return {"type": "tag", "begin": begin, "content": content, "end": closing + end}

    return call_format


def _value(mark: str, schema: object, is_strict: bool) -> Format:
    """Puts strings between their marks; values with further rules are JSON, which the parser reads
    too.
    """
    if isinstance(schema, dict) and schema.get("type") == "string":
        if schema.keys() <= _PLAIN_STRING_KEYWORDS:
            text: Format = {"type": "any_text"}
            if "maxLength" in schema:
                text["max_chars"] = schema["maxLength"]
            return {"type": "tag", "begin": mark, "content": text, "end": mark}
        values = schema.get("enum")
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return {"type": "choice", "choices": [f"{mark}{value}{mark}" for value in values]}
    return json_format(schema, is_strict)


GEMMA4 = Family(
    names=("gemma4",),
    matches=lambda template: (
        _START + _CALL in template or ("<|channel>thought" in template and _START in template)
    ),
    calls=Calls(
        make_parser=Gemma4Parser,
        trigger=_START,
        call_format=_call_format(_START, _END, _QUOTE),
        special_tokens=frozenset({_START, _END, _QUOTE}),
    ),
    reasoning=Reasoning(
        start="<|channel>thought\n",
        end="<channel|>",
        other_starts=("<|channel>thought",),
        special_tokens=frozenset({"<|channel>", "<channel|>"}),
    ),
)

FUNCTION_GEMMA = Family(
    names=("functiongemma",),
    matches=lambda template: _OTHER_START in template,
    calls=Calls(
        make_parser=Gemma4Parser,
        trigger=_OTHER_START,
        call_format=_call_format(_OTHER_START, _OTHER_END, _OTHER_QUOTE),
        special_tokens=frozenset({_OTHER_START, _OTHER_END, _OTHER_QUOTE}),
    ),
)
