"""Filters and methods of chat templates are asked how long their result may be, before they make it.

`"x".center(10**10)` is ten gigabytes in one call, which no check of the time interrupts. What is not in these tables
gives no more than a few times what it was given. Estimates are upper bounds, or close to them: nobody pads to millions.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import wraps
from types import BuiltinMethodType
from typing import Any

from ouzel.prompts.marked_text import bare

Length = Callable[..., int]  # of the result, from the arguments, the text itself first

# A conversion with a width, or a precision, of five digits or of a value; a name in brackets may have some itself.
_WIDE_PERCENT = re.compile(
    r"%(?:\([^()]*\))?(?:[-#0 +]*(?:\*|\d{5})|[-#0 +\d]*\.(?:\*|\d{5}))|%\([^()]*\("
)
_WIDE = re.compile(r"\{[^{}]*\d{5}")
_NESTED = re.compile(r"\{[^{}]*\{")
_LONG = 2**62  # longer than anything that is allowed


def _size(value: object) -> int:
    return len(value) if isinstance(value, Sized) else len(str(value))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _padded(text: object, width: object = 80, *_: object, **named: object) -> int:
    return max(_size(text), _number(named.get("width", width)))


def _replaced(text: object, old: object = "", new: object = "", *_: object, **named: object) -> int:
    old, new = named.get("old", old), named.get("new", new)
    if isinstance(text, bytes) and isinstance(old, bytes):
        return len(text) + text.count(old) * _size(new)
    return len(str(text)) + str(text).count(str(old)) * len(str(new))


def _joined(separator: object, items: object) -> int:
    if isinstance(items, str | bytes):
        return len(items) * (1 + _size(separator))
    if not isinstance(items, Sized) or not isinstance(items, Iterable):
        return 0  # and joining it is an error
    return sum(map(_size, items)) + len(items) * _size(separator)


def _formatted(template: object, *values: object, **named: object) -> int:
    text, everything = bare(str(template)), [*values, *named.values()]
    if _WIDE.search(text) or (_NESTED.search(text) and _num_digits([text, *everything]) > 4):
        return _LONG
    return len(text) + text.count("{") * max(map(_size, everything), default=0)


def _num_digits(values: list[object]) -> int:
    """Counts what nested widths may be put together of."""
    return sum(each.isdigit() for value in values for each in bare(str(value)))


def percent_formatted(template: object, *values: object, **named: object) -> int:
    text = bare(str(template)).replace("%%", "")
    if _WIDE_PERCENT.search(text):
        return _LONG
    return len(text) + text.count("%") * max(map(_size, [*values, *named.values()]), default=0)


def _translated(text: object, table: object = None) -> int:
    longest = max(map(_size, table.values()), default=1) if isinstance(table, Mapping) else 1
    return _size(text) * max(longest, 1)


METHODS: Mapping[str, Length] = {
    "center": _padded,
    "ljust": _padded,
    "rjust": _padded,
    "zfill": _padded,
    "expandtabs": lambda text, tabsize=8, **named: (
        _size(text) * max(_number(named.get("tabsize", tabsize)), 1)
    ),
    "replace": _replaced,
    "join": _joined,
    "format": _formatted,
    "format_map": lambda text, values: _formatted(text, *values.values()),
    "translate": _translated,
    "to_bytes": lambda _value, length=1, *_, **named: _number(named.get("length", length)),
}


def _indented(text: object, width: object = 4, *_: object, **named: object) -> int:
    width = named.get("width", width)
    return _size(text) + (str(text).count("\n") + 1) * (
        width if isinstance(width, int) else _size(width)
    )


def _filter_joined(items: object, d: object = "", *_: object, **named: object) -> int:
    return _joined(named.get("d", d), items)


def _batched(items: object, linecount: object = 1, *_: object, **named: object) -> int:
    return _number(named.get("linecount", linecount))


def _sliced(items: object, slices: object = 1, *_: object, **named: object) -> int:
    return _number(named.get("slices", slices))


def _wrapped(text: object, width: object = 79, *rest: object, **named: object) -> int:
    """The text may be cut after every character; the third argument is what each line ends with."""
    ending = named.get("wrapstring", rest[1] if len(rest) > 1 else "\n")
    return _size(text) * (1 + (0 if ending is None else _size(ending)))


def _json_indented(value: object, *rest: object, **named: object) -> int:
    indent = named.get("indent", rest[1] if len(rest) > 1 else None)
    return 2**10 * (_number(indent) if isinstance(indent, int) else _size(indent or ""))


FILTERS: Mapping[str, Length] = {
    "center": _padded,
    "replace": _replaced,
    "join": _filter_joined,
    "format": percent_formatted,
    "indent": _indented,
    "batch": _batched,
    "slice": _sliced,
    "wordwrap": _wrapped,
    "tojson": _json_indented,
}

Filter = Callable[..., Any]  # Any: whatever the filter makes


def bounded_filter(name: str, filter_: Filter, check: Callable[[int], None]) -> Filter:
    """Calls `check` with the length that the result may have; filters that are passed Jinja's context keep that."""
    length, passed = FILTERS[name], int(hasattr(filter_, "jinja_pass_arg"))

    @wraps(filter_)
    def bounded(*arguments: object, **named: object) -> object:
        context, own = arguments[:passed], arguments[passed:]
        if name == "join":
            own = _listed(own)
        check(length(*own, **named))
        return filter_(*context, *own, **named)

    return bounded


def bounded_arguments(
    method: object,
    arguments: tuple[object, ...],
    named: Mapping[str, object],
    check: Callable[[int], None],
) -> tuple[object, ...]:
    """Calls `check` where the method is one of a text, of bytes or of an integer, and returns the arguments for it."""
    method = getattr(method, "__wrapped__", method)  # Jinja wraps `str.format`
    owner = getattr(method, "__self__", None)
    name = getattr(method, "__name__", "")
    if (
        not isinstance(method, BuiltinMethodType)
        or not isinstance(owner, str | bytes | int)
        or name not in METHODS
    ):
        return arguments
    if name == "join":
        arguments = _listed(arguments)
    check(METHODS[name](owner, *arguments, **named))
    return arguments


def _listed(arguments: tuple[object, ...]) -> tuple[object, ...]:
    """Replaces a first argument that makes its items one by one by a list of them, so that they can be counted."""
    if arguments and isinstance(arguments[0], Iterable) and not isinstance(arguments[0], Sized):
        return [*arguments[0]], *arguments[1:]
    return arguments
