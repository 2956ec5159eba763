"""Mistral writes a JSON list after a mark, or names and arguments between marks.

[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]
[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]ping[CALL_ID]a1b2c3d4e[ARGS]{}

At the beginning of the output the list may lack its mark; then it must name the request's tools.
"""

import secrets

from ouzel.parsers.base import Calls, Family, Format, Reasoning
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import call_tag, json_call_tag
from ouzel.types.tools import FunctionTool

_CALLS, _CALL_ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_THINK = Reasoning(
    start="[THINK]", end="[/THINK]", special_tokens=frozenset({"[THINK]", "[/THINK]"})
)


def _new_call_id() -> str:
    """Returns an id of nine characters, the only length that the templates accept."""
    return secrets.token_hex(5)[:9]


class MistralParser(JsonReadingParser):
    def open_call(self, name: str, call_id: str | None = None) -> None:
        super().open_call(name, call_id or _new_call_id())

    def read(self) -> Reading[None]:
        yield from self.pass_whitespace()
        is_first = (yield from self.peek()) != "[" or not (
            yield from self.read_calls(known=self._names)
        )
        self.rewind()
        yield from self.read_marked([_CALLS], self._read_after_mark, is_first=is_first)

    def _read_after_mark(self, mark: str) -> Reading[bool]:
        yield from self.pass_whitespace()
        is_json = (yield from self.peek()) in ("[", "{")
        return (yield from self.read_calls() if is_json else self._read_named_call())

    def _read_named_call(self) -> Reading[bool]:
        name = yield from self.pass_name()
        call_id = None
        if (yield from self.passes(_CALL_ID)):
            call_id = yield from self.pass_name()
        has_mark = (yield from self.passes(_ARGUMENTS)) is not None
        if not name or not (has_mark or (yield from self.peek()) == "{"):
            return False
        return (yield from self.read_arguments(name, _CALLS, call_id=call_id))


def _named_call_format(tool: FunctionTool) -> Format:
    return call_tag(tool, _CALLS + tool.name + _ARGUMENTS, "")


MISTRAL = Family(
    names=("mistral",),
    matches=lambda template: (
        _CALLS in template or ("[AVAILABLE_TOOLS]" in template and "[/AVAILABLE_TOOLS]" in template)
    ),
    calls=Calls(
        make_parser=MistralParser,
        trigger=_CALLS,
        call_format=json_call_tag,
        before=_CALLS + "[",
        separator=", ",
        after="]",
        special_tokens=frozenset({_CALLS, _CALL_ID, _ARGUMENTS}),
        make_call_id=_new_call_id,
    ),
    reasoning=_THINK,
)

# Devstral, Mistral Small 3.2, Magistral and Ministral 3.
DEVSTRAL = Family(
    names=("devstral",),
    matches=lambda template: _CALLS in template and _ARGUMENTS in template,
    calls=Calls(
        make_parser=MistralParser,
        trigger=_CALLS,
        call_format=_named_call_format,
        special_tokens=frozenset({_CALLS, _CALL_ID, _ARGUMENTS}),
        make_call_id=_new_call_id,
    ),
    reasoning=_THINK,
)
