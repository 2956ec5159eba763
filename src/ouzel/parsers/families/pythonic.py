"""Llama 4, LFM2, OLMo 3 and others write calls in Python's syntax, with marks of each family or
without.

[get_weather(city="Paris", days=3), ping()]
<|python_start|>[get_weather(city="Paris")]<|python_end|>
<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>
<function_calls>
get_weather(city="Paris")
ping()
</function_calls>

Without marks, the list is read only at the beginning of the output, and only with the names of the
request's tools. One dictionary may hold all arguments: `get_weather(**{"city": "Paris"})`.
"""

from collections.abc import Callable, Collection, Sequence

from ouzel.parsers.base import Calls, Family, Format
from ouzel.parsers.literal_reading_parser import LiteralReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import arguments_schema, json_format, named_values_format
from ouzel.parsers.thinking import THINK_TAGS
from ouzel.types.tools import FunctionTool

_PYTHON, _PYTHON_END = "<|python_start|>", "<|python_end|>"
_LFM, _LFM_END = "<|tool_call_start|>", "<|tool_call_end|>"
_OLMO, _OLMO_END = "<function_calls>", "</function_calls>"
_STARTS, _ENDS = (_PYTHON, _LFM, _OLMO), (_PYTHON_END, _LFM_END, _OLMO_END)


class PythonicParser(LiteralReadingParser):
    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        super().__init__(tools)
        self._names = frozenset(tool.name for tool in tools)

    def read(self) -> Reading[None]:
        yield from self.pass_whitespace()
        is_first = (yield from self.peek()) != "[" or not (yield from self._read_calls(self._names))
        self.rewind()
        yield from self.read_marked(_STARTS, self._read_after_mark, is_first=is_first)

    def _read_after_mark(self, mark: str) -> Reading[bool]:
        yield from self.pass_whitespace()
        if not (yield from self._read_calls(None)):
            return False
        yield from self.pass_end(*_ENDS)
        return True

    def _read_calls(self, known: Collection[str] | None) -> Reading[bool]:
        """Reads calls, in a list or not, of the `known` names only (None: any).

        Returns False, with nothing passed, if there is no call.
        """
        yield from self.passes("[")
        yield from self.pass_whitespace()
        num_calls, following = 0, self._at
        while (yield from self._read_call(known)):
            num_calls += 1
            yield from self.pass_whitespace()
            yield from self.passes(",", ";")
            yield from self.pass_whitespace()
            following = self._at
        self._at = following
        if not num_calls:
            return False
        if self._is_cut and not (yield from self.peek()):
            self.commit()
        self.rewind()
        yield from self.pass_whitespace()
        yield from self.passes(",")
        yield from self.pass_whitespace()
        if (yield from self.passes("]")):
            self.commit()
        self.rewind()
        return True

    def _read_call(self, known: Collection[str] | None) -> Reading[bool]:
        """Reads one call, which opens once an argument's name is complete.

        Returns False, with nothing committed, if there is no call.
        """
        name = yield from self.pass_name()
        if not name or (known is not None and name not in known):
            return False
        if (yield from self.passes("(")) is None:
            return False
        yield from self.pass_whitespace()
        inside = self._at
        if (yield from self.passes("**")):
            yield from self.pass_whitespace()
            if (yield from self.peek()) != "{":
                return False
            self.open_call(name)
            if (yield from self.read_object()) and (yield from self.passes(")")):
                self.commit()
            return True
        if (yield from self.passes(")")) is None and (yield from self.pass_key("=")) is None:
            return False
        self._at = inside
        self.open_call(name)
        yield from self.read_named("=", ")")
        return True


def _call_format(begin: str, end: str) -> Callable[[FunctionTool], Format]:
    return lambda tool: {
        "type": "tag",
        "begin": f"{begin}{tool.name}(",
        "content": _arguments(tool),
        "end": ")" + end,
    }


def _arguments(tool: FunctionTool) -> Format:
    whole: Format = {
        "type": "tag",
        "begin": "**",
        "content": json_format(arguments_schema(tool)),
        "end": "",
    }
    return named_values_format(tool, sign="=", comma=", ", whole=whole)


def _calls(before: str, separator: str, after: str, trigger: str) -> Calls:
    return Calls(
        make_parser=PythonicParser,
        trigger=trigger,
        call_format=_call_format("", ""),
        before=before,
        separator=separator,
        after=after,
        special_tokens=frozenset({_PYTHON, _PYTHON_END, _LFM, _LFM_END}),
    )


LFM2 = Family(
    names=("lfm2", "lfm25"),
    matches=lambda template: _LFM in template or "keep_past_thinking" in template,
    calls=_calls(_LFM + "[", ", ", "]" + _LFM_END, _LFM),
    reasoning=THINK_TAGS,
)

OLMO3 = Family(
    names=("olmo3",),
    matches=lambda template: _OLMO in template and "<functions>" in template,
    calls=_calls(_OLMO, "\n", _OLMO_END, _OLMO),
    reasoning=THINK_TAGS,
)

LLAMA4 = Family(
    names=("llama4_pythonic", "llama4"),
    matches=lambda template: _PYTHON in template,
    calls=_calls(_PYTHON + "[", ", ", "]" + _PYTHON_END, _PYTHON),
)

# Models whose prompts ask for this format: Llama 3.2, ToolACE.
PYTHONIC = Family(
    names=("pythonic",),
    matches=lambda template: "func_name1(params_name1=params_value1" in template,
    calls=_calls("[", ", ", "]", "["),
)
