"""DeepSeek R1, V3 and V3.1: a section of calls. R1 and V3 write the arguments in a fence.

V3:   <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
      ```json
      {"city": "Paris"}
      ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
V3.1: <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}
      <｜tool▁call▁end｜><｜tool▁calls▁end｜> (in one line)
"""

from ouzel.parsers.base import Calls, Family
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import call_tag
from ouzel.parsers.thinking import THINK_TAGS

_BEGIN, _END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL_BEGIN, _SEPARATOR = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"
_CALL_END = "<｜tool▁call▁end｜>"
_TYPE = "function"
_FENCE, _FENCE_END = "```json", "```"
_MARKS = frozenset({_BEGIN, _END, _CALL_BEGIN, _SEPARATOR, _CALL_END})


class DeepSeekParser(JsonReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_sections([_BEGIN], _CALL_BEGIN, _END, self._read_call)

    def _read_call(self) -> Reading[bool]:
        name = yield from self.pass_name()
        if not name or not (yield from self.passes(_SEPARATOR)):
            return False
        if name == _TYPE:  # either V3's type of a call, or a function's name
            name = (yield from self.pass_name()) or name
            if not (yield from self.peek()):
                return False  # the name may have been cut
        yield from self.pass_whitespace()
        ends: tuple[str, ...] = (_CALL_END, _END)
        if (yield from self.passes(_FENCE)):
            ends = (*ends, _FENCE_END)
        if not (yield from self.read_arguments(name, *ends)):
            return False
        yield from self.pass_closers()
        if (yield from self.passes_end(_FENCE_END)):
            yield from self.pass_whitespace()
            self.commit()
        if (yield from self.passes_end(_CALL_END)):
            self.commit()
        self.rewind()
        return True


DEEPSEEK_V3 = Family(
    names=("deepseek_v3", "deepseekv3", "deepseek"),
    matches=lambda template: _BEGIN in template and _FENCE in template,
    calls=Calls(
        make_parser=DeepSeekParser,
        trigger=_BEGIN,
        call_format=lambda tool: call_tag(
            tool,
            f"{_CALL_BEGIN}{_TYPE}{_SEPARATOR}{tool.name}\n{_FENCE}\n",
            f"\n{_FENCE_END}{_CALL_END}",
        ),
        before=_BEGIN,
        separator="\n",
        after=_END,
        special_tokens=_MARKS,
    ),
    reasoning=THINK_TAGS,
)

DEEPSEEK_V31 = Family(
    names=("deepseek_v31", "deepseekv31"),
    matches=lambda template: _BEGIN in template,
    calls=Calls(
        make_parser=DeepSeekParser,
        trigger=_BEGIN,
        call_format=lambda tool: call_tag(tool, _CALL_BEGIN + tool.name + _SEPARATOR, _CALL_END),
        before=_BEGIN,
        after=_END,
        special_tokens=_MARKS,
    ),
    reasoning=THINK_TAGS,
)
