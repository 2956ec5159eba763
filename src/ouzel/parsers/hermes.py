"""Hermes 2 and 3, Qwen 2.5 and Qwen 3: a JSON object in marks.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>
"""

import json
from collections.abc import Sequence

from ouzel.parsers.base import Calls, Family, Format
from ouzel.parsers.reading import Reading
from ouzel.parsers.reading_json import JsonReadingParser
from ouzel.parsers.schemas import arguments_schema
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.types import FunctionTool

_START, _END = "<tool_call>", "</tool_call>"


class HermesParser(JsonReadingParser):
    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        super().__init__()

    def read(self) -> Reading[None]:
        keeps_blank = True
        while (yield from self.content_until(_START, is_first=keeps_blank)):
            yield from self.pass_whitespace()
            keeps_blank = not (yield from self.read_calls())
            if keeps_blank:
                self.rewind()
                self.content(_START)
                continue
            yield from self.pass_closers()
            if (yield from self.passes(_END)):
                self.commit()
            self.rewind()


def _call_format(tool: FunctionTool) -> Format:
    return {
        "type": "tag",
        "begin": f'{_START}\n{{"name": {json.dumps(tool.name)}, "arguments": ',
        "content": {"type": "json_schema", "json_schema": arguments_schema(tool)},
        "end": f"}}\n{_END}",
    }


HERMES = Family(
    names=("hermes", "hermes3", "qwen3", "qwen25", "qwen"),
    matches=lambda template: _START in template and _END in template,
    calls=Calls(
        make_parser=HermesParser,
        trigger=_START,
        call_format=_call_format,
        separator="\n",
        special_tokens=frozenset({_START, _END}),
    ),
    reasoning=THINK_TAGS,
)
