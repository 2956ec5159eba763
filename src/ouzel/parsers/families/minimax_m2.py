"""MiniMax-M2 writes a block of calls in XML-like tags, with names in attributes and bare values.

<minimax:tool_call>
<invoke name="get_weather">
<parameter name="city">Paris</parameter>
</invoke>
</minimax:tool_call>
"""

from ouzel.parsers.base import Calls, Family, Format
from ouzel.parsers.parameter_reading_parser import CallMarks, ParameterReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import call_tag
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.types.tools import FunctionTool, ParameterMarks

_START, _END = "<minimax:tool_call>", "</minimax:tool_call>"
_CALL, _CALL_END = '<invoke name="', "</invoke>"
MINIMAX_XML = ParameterMarks(
    style="minimax_xml", begin='<parameter name="', name_end='">', end="</parameter>"
)
_MARKS = CallMarks(parameter=MINIMAX_XML, call_ends=(_CALL_END,), others=(_END, _CALL, _START))


class MinimaxM2Parser(ParameterReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_sections([_START], _CALL, _END, self._read_call)

    def _read_call(self) -> Reading[bool]:
        name = yield from self.pass_name()
        if not name or (yield from self.passes('">')) is None:
            return False
        self.open_call(name)
        yield from self.read_parameters(_MARKS)
        return True


def _call_format(tool: FunctionTool) -> Format:
    return call_tag(tool, f'{_CALL}{tool.name}">\n', _CALL_END, marks=MINIMAX_XML)


MINIMAX_M2 = Family(
    names=("minimax_m2", "minimax-m2"),
    matches=lambda template: _START in template,
    calls=Calls(
        make_parser=MinimaxM2Parser,
        trigger=_START,
        call_format=_call_format,
        before=_START + "\n",
        separator="\n",
        after="\n" + _END,
        special_tokens=frozenset({_START, _END}),
    ),
    reasoning=THINK_TAGS,
)
