"""Keeps stand-ins for control tokens (`marked_text.py`) correct while a template runs.

The template's own texts get stand-ins before it is compiled. Then:

- Comparisons and look-ups read the stand-ins back first, so a template finds `</think>` in an
  earlier answer.
- Methods and filters that cut a text cut it at the same place as without stand-ins.
- Functions that change characters, such as `upper`, work on the text without stand-ins. Their
  result is plain text, no longer a control token.
- No function gives stand-ins to a client's text.
"""

import re
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from functools import partial, wraps
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import nodes

from ouzel.prompts.marked_text import StandIns, bare, has_stand_ins, without_stand_ins

BARE = "ouzel_bare"  # the filter that reads back operands and keys

# Filters that cut, count or combine their values and leave the characters unchanged.
_KEEPING_FILTERS = (
    frozenset({"attr", "batch", "center", "count", "d", "default", "first", "indent", "items"})
    | {"last", "length", "list", "map", "random", "replace", "reverse", "safe", "slice", "sum"}
    | {"tojson", "trim", "truncate"}
)
# Filters that may write lists and dictionaries out.
_WRITING_FILTERS = frozenset(("string", "join", "format"))
_SELECTING_FILTERS = frozenset(("select", "reject", "selectattr", "rejectattr"))
# filter -> position of the argument that names an attribute or a filter
_NAMES = {"attr": 1, "map": 1, "sum": 1, "join": 2}
COMPARING_TESTS = frozenset(
    {"==", "eq", "equalto", "!=", "ne", "in", "lower", "upper", ">", "gt", "greaterthan"}
) | {">=", "ge", "<", "lt", "lessthan", "<=", "le", "filter", "test"}
_KEEPING_METHODS = frozenset(
    ["center", "expandtabs", "format", "format_map", "join", "ljust", "rjust", "zfill"]
)
_CUTTING_METHODS = frozenset(
    {"lstrip", "partition", "removeprefix", "removesuffix", "rpartition", "rsplit"}
) | {"rstrip", "split", "splitlines", "strip"}
_KEY_METHODS = frozenset(("get", "pop", "setdefault"))
_FINDING_METHODS = frozenset(("count", "index"))
# A conversion, at whose place formatting may insert text between the beginning and end of a mark.
_CONVERSION = re.compile(r"(%(?:\(\w*\))?[-#0 +\d.]*[a-zA-Z]|\{[\w.:!]*\})")
# Conversions that escape their value or write a character by its number.
_REWRITING = re.compile(r"\{[^{}]*(?:[!:][acr]|:[^{}]*c)\}|\{[^{}]*\{")
_REWRITING_PERCENT = re.compile(r"%(?:\([^)]*\))?[^a-zA-Z%]*[acr]")


def write_stand_ins(template: nodes.Template, stand_ins: StandIns) -> None:
    for data in list(template.find_all(nodes.TemplateData)):
        data.data = stand_ins.write_all(data.data)
    for const in list(template.find_all(nodes.Const)):
        if isinstance(const.value, str):
            const.value = "".join(map(stand_ins.write_parts, _CONVERSION.split(const.value)))
    for comparison in list(template.find_all(nodes.Compare)):
        comparison.expr = _bare(comparison.expr)
        for operand in comparison.ops:
            operand.expr = _bare(operand.expr)
    for item in list(template.find_all(nodes.Getitem)):
        item.arg = _bare(item.arg)
    for pair in list(template.find_all(nodes.Pair)):
        pair.key = _bare(pair.key)


def _bare(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Slice) else nodes.Filter(node, BARE, [], [], None, None)


def read_back_operand(value: object) -> object:
    """Reads back the stand-ins in a value; it is the filter `BARE`. Keys of dictionaries have
    none.
    """
    if isinstance(value, str):
        return bare(value)
    if isinstance(value, list | ValuesView | KeysView | ItemsView):
        return [read_back_operand(item) for item in value]
    return tuple(map(read_back_operand, value)) if type(value) is tuple else value


def prepare_output(value: object) -> object:
    """Prepares a value for output: reads back texts inside containers, whose repr would escape
    them.
    """
    return value if isinstance(value, str) else _each_text(value, bare)


def remove_stand_ins(value: object) -> object:
    """Removes stand-ins from a client's value, so that they cannot pass for the template's."""
    return _each_text(value, without_stand_ins)


def _read_back(value: object) -> object:
    return _each_text([*value] if isinstance(value, Iterator) else value, bare)


def _each_text(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if type(value) is dict:
        return {_each_text(key, change): _each_text(item, change) for key, item in value.items()}
    if type(value) is list:
        return [_each_text(item, change) for item in value]
    return tuple(_each_text(item, change) for item in value) if type(value) is tuple else value


def filter_with_stand_ins(name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:
    num_passed = int(hasattr(filter_, "jinja_pass_arg"))

    @wraps(filter_)
    def changed(*arguments: object, **named: object) -> object:
        passed, own = arguments[:num_passed], [*arguments[num_passed:]]
        if "attribute" in named:
            named["attribute"] = read_back_operand(named["attribute"])
        if name in _NAMES:
            own[_NAMES[name] :] = [
                *map(read_back_operand, own[_NAMES[name] :][:1]),
                *own[_NAMES[name] + 1 :],
            ]
        if name in _KEEPING_FILTERS:
            return filter_(*passed, *own, **named)
        if name in _SELECTING_FILTERS:
            return filter_(*passed, *own[:1], *map(read_back_operand, own[1:]), **named)
        if name in _WRITING_FILTERS and not (name == "format" and _rewrites(own[0])):
            if name == "join" and not isinstance(own[0], str) and isinstance(own[0], Iterable):
                return filter_(*passed, [*map(prepare_output, own[0])], *own[1:], **named)
            return filter_(
                *passed,
                *map(prepare_output, own),
                **{key: prepare_output(value) for key, value in named.items()},
            )
        return _without_own(filter_, *own, passed=passed, **named)

    return changed


def _without_own(
    function: Callable[..., Any], /, *arguments: object, passed: Sequence[object], **named: object
) -> Any:
    """Calls a function with the texts behind the stand-ins of marked texts.

    A text in the result has no stand-ins, even if the function makes some: it does not count as the
    template's own text.
    """
    named = {key: _read_back(value) for key, value in named.items()}
    made = function(*passed, *map(_read_back, arguments), **named)
    return without_stand_ins(made) if isinstance(made, str) else made


def comparing_test(test: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(test)
    def changed(*arguments: object) -> object:
        return test(*map(read_back_operand, arguments))

    return changed


def call_with_stand_ins(
    function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]:
    """Adapts a call, perhaps of a text's method, so that it sees the texts behind the stand-ins."""
    method = getattr(function, "__wrapped__", function)  # the sandbox wraps `str.format`
    if isinstance(method, BuiltinMethodType | MethodType):
        owner, name = method.__self__, method.__name__
        if isinstance(owner, Mapping) and name in _KEY_METHODS:
            arguments = [*map(read_back_operand, arguments[:1]), *arguments[1:]]
        elif isinstance(owner, list | tuple) and name in _FINDING_METHODS:
            function = getattr(read_back_operand(owner), name)
            arguments = [*map(read_back_operand, arguments)]
        elif isinstance(owner, str | bytes):
            return _text_method(function, owner, name, arguments, named)
    return function, arguments, named


def _text_method(
    function: Callable[..., Any],
    owner: str | bytes,
    name: str,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]:
    if name in _KEEPING_METHODS and not (
        name.startswith("format") and _rewrites(owner, _REWRITING)
    ):
        if name == "join":
            return function, arguments, named
        named = {key: prepare_output(value) for key, value in named.items()}
        return function, [*map(prepare_output, arguments)], named
    if name == "replace" and isinstance(owner, str):
        return partial(replace_text, owner), arguments, named
    if name in _CUTTING_METHODS and type(owner) is str:
        arguments = [*map(read_back_operand, arguments)]
        named = {key: read_back_operand(each) for key, each in named.items()}
        return (partial(_cut, owner, name) if has_stand_ins(owner) else function), arguments, named
    if isinstance(owner, str) and has_stand_ins(owner) and not name.startswith("format"):
        function = getattr(type(owner)(bare(owner)), name)
    return partial(_without_own, function, passed=()), arguments, named


def prepare_percent_operands(template: str, values: object) -> tuple[str, object]:
    """Returns the operands of `%` for a call that keeps or removes the stand-ins correctly."""
    if _rewrites(template):
        return bare(template), _read_back(values)
    return template, tuple(map(prepare_output, values)) if isinstance(
        values, tuple
    ) else prepare_output(values)


def _rewrites(template: object, pattern: re.Pattern[str] = _REWRITING_PERCENT) -> bool:
    return isinstance(template, str) and pattern.search(template) is not None


def replace_text(text: object, old: object, new: object, count: int | None = None) -> str:
    """Replaces like `str.replace`; it is also the filter `replace`."""
    text, old, new = str(prepare_output(text)), bare(str(old)), str(prepare_output(new))
    count = -1 if count is None else count
    if not old or not has_stand_ins(text):
        return text.replace(old, new, count)
    return new.join(_cut(text, "split", old, count))


def trim_text(value: object, chars: str | None = None) -> str:
    """Removes `chars` from both ends, like `str.strip`; it is also the filter `trim`."""
    text = _cut(str(prepare_output(value)), "strip", None if chars is None else bare(chars))
    assert isinstance(text, str)
    return text


# Any: each method has its own arguments and result
def _cut(text: str, name: str, /, *arguments: Any, **named: Any) -> Any:
    """Calls a method that cuts a text, and cuts where the method cuts the text without
    stand-ins.
    """
    plain = bare(text)
    parts = getattr(plain, name)(*arguments, **named)
    if isinstance(parts, str):
        begin = 0
        if name == "strip":
            begin = len(plain) - len(plain.lstrip(*arguments))
        elif name in ("lstrip", "removeprefix"):
            begin = len(plain) - len(parts)
        return text[begin : begin + len(parts)]
    cut, begin = [], 0
    separator = arguments[0] if arguments else named.get("sep")
    if name == "splitlines":
        lens = [len(line) for line in plain.splitlines(keepends=True)]
    for position, part in enumerate(parts):
        if name.endswith("split") and separator is None:
            # No part but the first begins with white space, so this is the part's place.
            begin = plain.find(part, begin)
        cut.append(text[begin : begin + len(part)])
        if name == "splitlines":
            begin += lens[position]
        else:
            begin += len(part) + (len(separator) if name.endswith("split") and separator else 0)
    return tuple(cut) if name.endswith("partition") else cut
