"""GLM 4.5 to 4.7 write a name, then keys and bare values between tags; later models omit the
newlines.

<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Paris</arg_value>
</tool_call>
"""

from ouzel.parsers.base import Calls, Family, Format
from ouzel.parsers.parameter_reading_parser import CallMarks, ParameterReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import call_tag
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.types.tools import FunctionTool, ParameterMarks

_START, _END = "<tool_call>", "</tool_call>"
GLM_XML = ParameterMarks(
    style="glm_xml",
    begin="<arg_key>",
    name_end="</arg_key>",
    value_begin="<arg_value>",
    end="</arg_value>",
)
_MARKS = CallMarks(parameter=GLM_XML, call_ends=(_END,), others=(_START,))


class Glm45Parser(ParameterReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_marked([_START], self._read_call)

    def _read_call(self, start: str) -> Reading[bool]:
        yield from self.pass_whitespace()
        name = yield from self.pass_name()
        yield from self.pass_whitespace()
        following = self._at
        if not name or (yield from self.passes(GLM_XML.begin, _END)) is None:
            return False
        self._at = following
        self.open_call(name)
        yield from self.read_parameters(_MARKS)
        return True


def _call_format(tool: FunctionTool) -> Format:
    return call_tag(tool, f"{_START}{tool.name}\n", _END, marks=GLM_XML)


GLM45 = Family(
    names=("glm45", "glm47", "glm4_moe"),
    matches=lambda template: GLM_XML.begin in template and GLM_XML.value_begin in template,
    calls=Calls(
        make_parser=Glm45Parser,
        trigger=_START,
        call_format=_call_format,
        separator="\n",
        special_tokens=frozenset(
            {_START, _END, GLM_XML.begin, GLM_XML.name_end, GLM_XML.value_begin, GLM_XML.end}
        ),
    ),
    reasoning=THINK_TAGS,
)
