"""Llama 3.1 to 3.3: JSON objects after an optional tag, separated by semicolons or newlines.

<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}};
{"name": "ping", "parameters": {}}

Without the tag, an object is a call only at the beginning of the output or of a line, and only with
the name of one of the request's tools. Any other JSON is content.
"""

from collections.abc import Collection

from ouzel.parsers.base import Calls, Family
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import json_call_tag

_TAG = "<|python_tag|>"
_SEPARATOR = ";"


class Llama3JsonParser(JsonReadingParser):
    def read(self) -> Reading[None]:
        is_first = not (yield from self._read_row(self._names))
        while True:
            marker = yield from self.content_until(_TAG, "\n", is_first=is_first)
            if marker is None:
                return
            if marker == _TAG:
                is_first = not (yield from self._read_row(None))
                if is_first:
                    self.keep_as_text(_TAG)
            else:
                self.keep_as_text("\n")
                if (yield from self.peek()) in ("{", "["):
                    is_first = not (yield from self._read_row(self._names))

    def _read_row(self, known: Collection[str] | None) -> Reading[bool]:
        """Reads calls and their separators; False, with nothing passed, if there is no call."""
        has_calls = False
        while True:
            yield from self.pass_whitespace()
            if (yield from self.passes(_TAG)):
                known = None
                yield from self.pass_whitespace()
            if not (yield from self.read_calls(known=known)):
                self.rewind()
                return has_calls
            has_calls = True
            yield from self.pass_closers()
            if (yield from self.passes(_SEPARATOR)) or not (yield from self.peek()):
                self.commit()


LLAMA3_JSON = Family(
    names=("llama3_json", "llama3", "llama4_json"),
    matches=lambda template: _TAG in template,
    calls=Calls(
        make_parser=Llama3JsonParser,
        trigger='{"name":',
        call_format=lambda tool: json_call_tag(tool, arguments_key="parameters"),
        separator="; ",
        special_tokens=frozenset({_TAG}),
    ),
)
