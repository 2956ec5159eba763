"""Weighs a value of a chat template before one call writes it out or compares it.

A list may contain another list twice, which contains a third list twice, and so on: 26 such lists
take a few kilobytes, but 500 MB of text after one call of `tojson`. No check of the time can
interrupt such a call. The weight counts a list as often as it is written, and visits it once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any  # each filter has its own arguments and result

from jinja2.runtime import LoopContext
from jinja2.utils import Namespace

Check = Callable[[int], None]  # raises an error if the number of characters is too large
Filter = Callable[..., Any]  # Any: each filter has its own arguments and result

LIGHT_TYPES = frozenset((str, bool, int, float, type(None)))  # their values contain no others

_EMPTY: dict[str, object] = {}
_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_CONTAINERS = (list, tuple, dict, Namespace, *_VIEWS)
_AROUND = 2  # least number of characters around a value
# Filters that pass their values on or count them; any other filter may write them out or compare.
_PASSING_FILTERS = (
    frozenset({"abs", "batch", "count", "d", "default", "first", "float", "int", "items", "last"})
    | {"length", "list", "map", "random", "reject", "rejectattr", "reverse", "round", "select"}
    | {"selectattr", "slice"}
)


def weigh(value: object, check: Check) -> None:
    """Calls `check` with the approximate length of the value's text."""
    if isinstance(value, _CONTAINERS):
        check(_weight(value, {}))


def list_if_iterator(value: object) -> object:
    """Returns an iterator's values as a list, which can be weighed; any other value unchanged."""
    if isinstance(value, Iterator) and not isinstance(value, LoopContext):
        return list(value)
    return value


def weigh_filter(name: str, filter_: Filter, check: Check) -> Filter:
    """Wraps a filter with `weigh_arguments` unless it only passes its values on."""
    return filter_ if name in _PASSING_FILTERS else weigh_arguments(filter_, check)


# Any: the wrapped function has its own arguments and result
def weigh_arguments(function: Filter, check: Check) -> Filter:
    """Wraps a function: its arguments are weighed before each call."""

    @wraps(function)
    def weigh_first(*arguments: object, **named: object) -> object:
        if not named and LIGHT_TYPES.issuperset(map(type, arguments)):  # the most common case
            return function(*arguments)
        values = [list_if_iterator(each) for each in arguments]
        for each in (*values, *named.values()):
            weigh(each, check)
        return function(*values, **named)

    return weigh_first


def _weight(value: object, known: dict[int, int]) -> int:
    """Returns the weight of a value. `known` maps the id of a container to its weight.

    Raises RecursionError for a deeply nested value.
    """
    if isinstance(value, str):
        return len(value) + _AROUND
    if not isinstance(value, _CONTAINERS):
        return _AROUND
    weight = known.get(id(value))
    if weight is None:
        held = _held(value)
        weight = _AROUND + sum(_weight(each, known) for each in held)
        if isinstance(held, Mapping):
            weight += sum(_weight(each, known) for each in held.values())
        known[id(value)] = weight
    return weight


def _held(value: Any) -> Iterable[object]:
    """Returns the container itself, or the dictionary behind a namespace or view."""
    if isinstance(value, Namespace):
        # Jinja has no other name for the attributes.
        attributes: dict[str, object] = value._Namespace__attrs
        return attributes
    return value.mapping if isinstance(value, _VIEWS) else value
