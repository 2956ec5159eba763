"""Kimi K2: a section of calls, each with an id and arguments. Other Kimi models only reason.

<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0
<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|>
<|tool_calls_section_end|> (all in one line)

The templates repeat a call's id as the model wrote it, so clients get this id, if it is unique.
"""

import re
from collections.abc import Sequence

from ouzel.parsers.base import Calls, Family, Format, Reasoning
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import arguments_format
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.types.tools import FunctionTool

_BEGIN, _END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_OTHER_BEGIN = "<|tool_call_section_begin|>"  # a variant that the model sometimes writes
_CALL_BEGIN, _CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_ID = re.compile(r"(?:functions\.)?(?P<name>.+?)(?P<number>:\d+)?")


class KimiK2Parser(JsonReadingParser):
    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        super().__init__(tools)
        self._ids: set[str] = set()

    def read(self) -> Reading[None]:
        yield from self.read_sections([_BEGIN, _OTHER_BEGIN], _CALL_BEGIN, _END, self._read_call)

    def _read_call(self) -> Reading[bool]:
        yield from self.pass_whitespace()
        call_id = yield from self.pass_name()
        yield from self.pass_whitespace()
        parts = _ID.fullmatch(call_id)
        if parts is None or not (yield from self.passes(_ARGUMENTS)):
            return False
        own_id = call_id if parts["number"] and call_id not in self._ids else None
        if not (yield from self.read_arguments(parts["name"], _CALL_END, _END, call_id=own_id)):
            return False
        self._ids.add(call_id)
        yield from self.pass_closers()
        if (yield from self.passes_end(_CALL_END)):
            self.commit()
        self.rewind()
        return True


def _call_format(tool: FunctionTool) -> Format:
    parts: list[Format] = [
        {"type": "regex", "pattern": "[0-9]{1,3}"},
        {"type": "const_string", "value": _ARGUMENTS},
        arguments_format(tool),
    ]
    return {
        "type": "tag",
        "begin": f"{_CALL_BEGIN}functions.{tool.name}:",
        "content": {"type": "sequence", "elements": parts},
        "end": _CALL_END,
    }


KIMI_K2 = Family(
    names=("kimi_k2",),
    matches=lambda template: (
        _BEGIN in template or "<|im_system|>tool_declare<|im_middle|>" in template
    ),
    calls=Calls(
        make_parser=KimiK2Parser,
        trigger=_BEGIN,
        call_format=_call_format,
        before=_BEGIN,
        after=_END,
        special_tokens=frozenset({_BEGIN, _END, _CALL_BEGIN, _ARGUMENTS, _CALL_END}),
    ),
    reasoning=Reasoning(
        start=THINK_TAGS.start,
        end=THINK_TAGS.end,
        special_tokens=THINK_TAGS.special_tokens,
        ended_by=(_BEGIN, _OTHER_BEGIN),
    ),
)

KIMI = Family(
    names=("kimi",),
    matches=lambda template: "◁think▷" in template,
    reasoning=Reasoning(
        start="◁think▷", end="◁/think▷", special_tokens=frozenset({"◁think▷", "◁/think▷"})
    ),
)
