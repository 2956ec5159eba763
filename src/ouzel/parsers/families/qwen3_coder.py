"""Qwen3-Coder, Qwen 3.5 and 3.6 write XML-like tags with bare values. The outer tag may be missing.

<tool_call>
<function=get_weather>
<parameter=city>
Paris
</parameter>
</function>
</tool_call>
"""

from ouzel.parsers.base import Calls, Family, Format
from ouzel.parsers.parameter_reading_parser import CallMarks, ParameterReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import call_tag
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.types.tools import FunctionTool, ParameterMarks

_START, _END = "<tool_call>", "</tool_call>"
_FUNCTION, _FUNCTION_END = "<function=", "</function>"
QWEN_XML = ParameterMarks(
    style="qwen_xml", begin="<parameter=", name_end=">", end="</parameter>", has_newlines=True
)
_MARKS = CallMarks(parameter=QWEN_XML, call_ends=(_FUNCTION_END,), others=(_END, _START, _FUNCTION))


class Qwen3CoderParser(ParameterReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_marked([_START, _FUNCTION], self._read_call)

    def _read_call(self, mark: str) -> Reading[bool]:
        if mark == _START:
            yield from self.pass_whitespace()
            if (yield from self.passes(_FUNCTION)) is None:
                return False
        name = yield from self.pass_name()
        if not name or (yield from self.passes(">")) is None:
            return False
        self.open_call(name)
        yield from self.read_parameters(_MARKS)
        yield from self.pass_end(_END)
        return True


def _call_format(tool: FunctionTool) -> Format:
    return call_tag(
        tool, f"{_START}\n{_FUNCTION}{tool.name}>\n", f"{_FUNCTION_END}\n{_END}", marks=QWEN_XML
    )


QWEN3_CODER = Family(
    names=("qwen3_coder", "qwen3coder", "qwen3_xml"),
    matches=lambda template: all(
        mark in template for mark in (QWEN_XML.begin, QWEN_XML.end, _FUNCTION)
    ),
    calls=Calls(
        make_parser=Qwen3CoderParser,
        trigger=_START,
        call_format=_call_format,
        separator="\n",
        special_tokens=frozenset({_START, _END}),
    ),
    reasoning=THINK_TAGS,
)
