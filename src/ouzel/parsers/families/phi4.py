"""Phi-4-mini writes a list of JSON objects after a word, or between special tokens.

functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]
<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>
"""

from ouzel.parsers.base import Calls, Family
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import json_call_tag

_WORD = "functools"
_START, _END = "<|tool_call|>", "<|/tool_call|>"


class Phi4Parser(JsonReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_marked_calls([_WORD, _START], [_END])


# Models whose template tells them to write the word.
PHI4 = Family(
    names=("phi4", "phi4_mini_json"),
    matches=lambda template: _WORD in template,
    calls=Calls(
        make_parser=Phi4Parser,
        trigger=_WORD + "[",
        call_format=json_call_tag,
        before=_WORD + "[",
        separator=", ",
        after="]",
        special_tokens=frozenset({_START, _END}),
    ),
)

PHI4_MINI = Family(
    names=("phi4_mini",),
    matches=lambda template: "<|tool|>" in template and "<|/tool|>" in template,
    calls=Calls(
        make_parser=Phi4Parser,
        trigger=_START,
        call_format=json_call_tag,
        before=_START + "[",
        separator=", ",
        after="]" + _END,
        special_tokens=frozenset({_START, _END}),
    ),
)
