"""A value of a chat template is weighed before one call writes it out or compares it.

A list may hold another list twice, which holds a third one twice, and so on: 26 such lists are a few kilobytes, and 500
MB once one call of `tojson` has written them out. No check of the time interrupts such a call. Here each list counts as
often as it is written, and is looked at once.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any  # whatever a filter takes and makes

Check = Callable[[int], None]  # raises an error for a number of characters that is too large
Filter = Callable[..., Any]

_CONTAINERS = (list, tuple, dict)
_AROUND = 2  # characters around a value, at least
# They pass their values on, or count them. All others may write their values out, or compare them.
_PASSING_FILTERS = frozenset(
    (
        *("abs", "attr", "batch", "count", "d", "default", "first", "float", "int", "items", "last", "length", "list"),
        *("map", "random", "reject", "rejectattr", "reverse", "round", "select", "selectattr", "slice"),
    )
)


def weigh(value: object, check: Check) -> None:
    """Calls `check` with about as many characters as the value is long once it is written out."""
    if isinstance(value, _CONTAINERS):
        check(_weight(value, {}))


def weighed_filter(name: str, filter_: Filter, check: Check) -> Filter:
    """Filters that are passed Jinja's context keep that."""
    return filter_ if name in _PASSING_FILTERS else weighed(filter_, check)


def weighed(function: Filter, check: Check) -> Filter:
    @wraps(function)
    def weigh_first(*arguments: object, **named: object) -> object:
        for each in arguments:
            if isinstance(each, _CONTAINERS):  # most are none, and this is on the way of each rendered value
                weigh(each, check)
        for each in named.values():
            weigh(each, check)
        return function(*arguments, **named)

    return weigh_first


def _weight(value: object, known: dict[int, int]) -> int:
    """`known` are the weights of containers by their identities. Raises RecursionError."""
    if isinstance(value, str):
        return len(value) + _AROUND
    if not isinstance(value, _CONTAINERS):
        return _AROUND
    weight = known.get(id(value))
    if weight is None:
        weight = _AROUND + sum(_weight(each, known) for each in value)
        if isinstance(value, dict):
            weight += sum(_weight(each, known) for each in value.values())
        known[id(value)] = weight
    return weight
