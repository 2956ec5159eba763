"""MiniCPM5 writes XML-like tags with names in attributes and bare values.

<function name="get_weather"><param name="city">Paris</param></function>
"""

from ouzel.parsers.base import Calls, Family, Format
from ouzel.parsers.parameter_reading_parser import CallMarks, ParameterReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import call_tag
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.types.tools import FunctionTool, ParameterMarks

_START, _END = '<function name="', "</function>"
MINICPM_XML = ParameterMarks(
    style="minicpm_xml", begin='<param name="', name_end='">', end="</param>"
)
_MARKS = CallMarks(parameter=MINICPM_XML, call_ends=(_END,), others=(_START,), has_cdata=True)


class MiniCpm5Parser(ParameterReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_marked([_START], self._read_call)

    def _read_call(self, start: str) -> Reading[bool]:
        name = yield from self.pass_name()
        if not name or (yield from self.passes('">')) is None:
            return False
        self.open_call(name)
        yield from self.read_parameters(_MARKS)
        return True


def _call_format(tool: FunctionTool) -> Format:
    return call_tag(tool, f'{_START}{tool.name}">', _END, marks=MINICPM_XML)


MINICPM5 = Family(
    names=("minicpm5", "minicpm5xml"),
    matches=lambda template: MINICPM_XML.begin in template,
    calls=Calls(
        make_parser=MiniCpm5Parser,
        trigger=_START,
        call_format=_call_format,
        special_tokens=frozenset({"<function", "</function>", "<param", "</param>"}),
    ),
    reasoning=THINK_TAGS,
)
