"""Hermes 2 and 3, Qwen 2.5 and 3, and Granite 4 write a JSON object between marks.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>
"""

from ouzel.parsers.base import Calls, Family
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import json_call_tag
from ouzel.parsers.thinking import THINK_TAGS

_START, _END = "<tool_call>", "</tool_call>"


class HermesParser(JsonReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_marked_calls([_START], [_END])


HERMES = Family(
    names=("hermes", "hermes3", "qwen3", "qwen25", "qwen", "granite4"),
    matches=lambda template: _START in template and _END in template,
    calls=Calls(
        make_parser=HermesParser,
        trigger=_START,
        call_format=lambda tool: json_call_tag(tool, begin=_START + "\n", end="\n" + _END),
        separator="\n",
        special_tokens=frozenset({_START, _END}),
    ),
    reasoning=THINK_TAGS,
)
