"""Granite 3: a list of JSON objects after a mark. Granite 4 writes calls like Hermes.

Here is my thought process: ... Here is my response: ...
<think>...</think><response>...</response> (3.3)
<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from ouzel.parsers.base import Calls, Family, Reasoning
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import json_call_tag
from ouzel.parsers.thinking import THINK_TAGS

_START, _OTHER_START, _OTHER_END = "<|tool_call|>", "<tool_call>", "</tool_call>"


class GraniteParser(JsonReadingParser):
    def read(self) -> Reading[None]:
        yield from self.read_marked_calls([_START, _OTHER_START], [_OTHER_END])


def _is_granite3(template: str) -> bool:
    return "<|start_of_role|>" in template and _OTHER_END not in template


GRANITE = Family(
    names=("granite",),
    matches=_is_granite3,
    calls=Calls(
        make_parser=GraniteParser,
        trigger=_START,
        call_format=json_call_tag,
        before=_START + "[",
        separator=", ",
        after="]",
        special_tokens=frozenset({_START}),
    ),
    reasoning=Reasoning(
        start="Here is my thought process:",
        end="Here is my response:",
        other_starts=("Here's my thought process:",),
        other_ends=("Here's my response:",),
    ),
)

# Granite 3.3 reasons in other marks.
GRANITE_33 = Family(
    names=("granite33",),
    matches=lambda template: _is_granite3(template) and "<response>" in template,
    reasoning=Reasoning(
        start=THINK_TAGS.start,
        end=THINK_TAGS.end,
        special_tokens=THINK_TAGS.special_tokens,
        answer=("<response>", "</response>"),
    ),
)
