"""Estimates the length of a filter's or method's result before a chat template calls it.

`"x".center(10**10)` makes ten gigabytes in one call, which no check of the time can interrupt.
Functions outside these tables return at most a few times the length of their input. Estimates are
upper bounds, or close to them: no template pads to millions of characters.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import wraps
from types import BuiltinMethodType
from typing import Any

from ouzel.prompts.marked_text import bare

# Estimates the length of a result from the arguments, the text itself first.
Length = Callable[..., int]

# A conversion with a width or precision of five digits, or from a value; digits in a bracketed name
# do not count, nested brackets do.
_WIDE_PERCENT = re.compile(
    r"%(?:\([^()]*\))?(?:[-#0 +]*(?:\*|\d{5})|[-#0 +\d]*\.(?:\*|\d{5}))|%\([^()]*\("
)
_WIDE = re.compile(r"\{[^{}]*\d{5}")
_NESTED = re.compile(r"\{[^{}]*\{")
_LONG = 2**62  # longer than any allowed result


def _size(value: object) -> int:
    return len(value) if isinstance(value, Sized) else len(str(value))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _padded_len(text: object, width: object = 80, *_: object, **named: object) -> int:
    return max(_size(text), _number(named.get("width", width)))


def _replaced_len(
    text: object, old: object = "", new: object = "", *_: object, **named: object
) -> int:
    old, new = named.get("old", old), named.get("new", new)
    if isinstance(text, bytes) and isinstance(old, bytes):
        return len(text) + text.count(old) * _size(new)
    return len(str(text)) + str(text).count(str(old)) * len(str(new))


def _joined_len(separator: object, items: object) -> int:
    if isinstance(items, str | bytes):
        return len(items) * (1 + _size(separator))
    if not isinstance(items, Sized) or not isinstance(items, Iterable):
        return 0  # joining raises an error
    return sum(map(_size, items)) + len(items) * _size(separator)


def _formatted_len(template: object, *values: object, **named: object) -> int:
    text, everything = bare(str(template)), [*values, *named.values()]
    if _WIDE.search(text) or (_NESTED.search(text) and _num_digits([text, *everything]) > 4):
        return _LONG
    return len(text) + text.count("{") * max(map(_size, everything), default=0)


def _num_digits(values: list[object]) -> int:
    """Counts the digits of which nested widths may be composed."""
    return sum(each.isdigit() for value in values for each in bare(str(value)))


def percent_format_len(template: object, *values: object, **named: object) -> int:
    text = bare(str(template)).replace("%%", "")
    if _WIDE_PERCENT.search(text):
        return _LONG
    return len(text) + text.count("%") * max(map(_size, [*values, *named.values()]), default=0)


def _translated_len(text: object, table: object = None) -> int:
    longest = max(map(_size, table.values()), default=1) if isinstance(table, Mapping) else 1
    return _size(text) * max(longest, 1)


METHODS: Mapping[str, Length] = {
    "center": _padded_len,
    "ljust": _padded_len,
    "rjust": _padded_len,
    "zfill": _padded_len,
    "expandtabs": lambda text, tabsize=8, **named: (
        _size(text) * max(_number(named.get("tabsize", tabsize)), 1)
    ),
    "replace": _replaced_len,
    "join": _joined_len,
    "format": _formatted_len,
    "format_map": lambda text, values: _formatted_len(text, *values.values()),
    "translate": _translated_len,
    "to_bytes": lambda _value, length=1, *_, **named: _number(named.get("length", length)),
}


def _indented_len(text: object, width: object = 4, *_: object, **named: object) -> int:
    width = named.get("width", width)
    return _size(text) + (str(text).count("\n") + 1) * (
        width if isinstance(width, int) else _size(width)
    )


def _filter_joined_len(items: object, d: object = "", *_: object, **named: object) -> int:
    return _joined_len(named.get("d", d), items)


def _batched_len(items: object, linecount: object = 1, *_: object, **named: object) -> int:
    return _number(named.get("linecount", linecount))


def _sliced_len(items: object, slices: object = 1, *_: object, **named: object) -> int:
    return _number(named.get("slices", slices))


def _wrapped_len(text: object, width: object = 79, *rest: object, **named: object) -> int:
    """Returns the length if the text is cut after every character; the third argument ends each
    line.
    """
    ending = named.get("wrapstring", rest[1] if len(rest) > 1 else "\n")
    return _size(text) * (1 + (0 if ending is None else _size(ending)))


def _json_indented_len(value: object, *rest: object, **named: object) -> int:
    indent = named.get("indent", rest[1] if len(rest) > 1 else None)
    return 2**10 * (_number(indent) if isinstance(indent, int) else _size(indent or ""))


FILTERS: Mapping[str, Length] = {
    "center": _padded_len,
    "replace": _replaced_len,
    "join": _filter_joined_len,
    "format": percent_format_len,
    "indent": _indented_len,
    "batch": _batched_len,
    "slice": _sliced_len,
    "wordwrap": _wrapped_len,
    "tojson": _json_indented_len,
}

Filter = Callable[..., Any]  # Any: each filter has its own result


def bound_filter(name: str, filter_: Filter, check: Callable[[int], None]) -> Filter:
    """Wraps a filter: it calls `check` with the estimated length of the result first.

    A filter that Jinja passes its context to keeps this argument.
    """
    length, passed = FILTERS[name], int(hasattr(filter_, "jinja_pass_arg"))

    @wraps(filter_)
    def bounded(*arguments: object, **named: object) -> object:
        context, own = arguments[:passed], arguments[passed:]
        if name == "join":
            own = _listed(own)
        check(length(*own, **named))
        return filter_(*context, *own, **named)

    return bounded


def check_arguments(
    method: object,
    arguments: tuple[object, ...],
    named: Mapping[str, object],
    check: Callable[[int], None],
) -> tuple[object, ...]:
    """Calls `check` with the estimated length if `method` belongs to a text, bytes or an integer.

    Returns the arguments for the call.
    """
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
    """Turns an iterator in the first place into a list, so that its items can be counted."""
    if arguments and isinstance(arguments[0], Iterable) and not isinstance(arguments[0], Sized):
        return [*arguments[0]], *arguments[1:]
    return arguments
