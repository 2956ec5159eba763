"""A value of a chat template is weighed before one call writes it out or compares it.

A list may hold another list twice, which holds a third one twice, and so on: 26 such lists are a few kilobytes, and 500
MB once one call of `tojson` has written them out. No check of the time interrupts such a call. Here each list counts as
often as it is written, and is looked at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any  # whatever a filter takes and makes

from jinja2.runtime import LoopContext
from jinja2.utils import Namespace

Check = Callable[[int], None]  # raises an error for a number of characters that is too large
Filter = Callable[..., Any]

LIGHT_TYPES = frozenset((str, bool, int, float, type(None)))  # their values hold no others

_EMPTY: dict[str, object] = {}
_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_CONTAINERS = (list, tuple, dict, Namespace, *_VIEWS)
_AROUND = 2  # characters around a value, at least
# They pass their values on, or count them. All others may write their values out, or compare them.
_PASSING_FILTERS = frozenset(
    (
        *(
            "abs",
            "batch",
            "count",
            "d",
            "default",
            "first",
            "float",
            "int",
            "items",
            "last",
            "length",
            "list",
        ),
        *(
            "map",
            "random",
            "reject",
            "rejectattr",
            "reverse",
            "round",
            "select",
            "selectattr",
            "slice",
        ),
    )
)


def weigh(value: object, check: Check) -> None:
    """Calls `check` with about as many characters as the value is long once it is written out."""
    if isinstance(value, _CONTAINERS):
        check(_weight(value, {}))


def taken(value: object) -> object:
    """Returns a list in the place of an iterator, as most filters give one: it can be weighed."""
    return (
        list(value) if isinstance(value, Iterator) and not isinstance(value, LoopContext) else value
    )


def weighed_filter(name: str, filter_: Filter, check: Check) -> Filter:
    """Filters that are passed Jinja's context keep that."""
    return filter_ if name in _PASSING_FILTERS else weighed(filter_, check)


def weighed(function: Filter, check: Check) -> Filter:
    @wraps(function)
    def weigh_first(*arguments: object, **named: object) -> object:
        if not named and LIGHT_TYPES.issuperset(map(type, arguments)):  # as nearly always
            return function(*arguments)
        values = [taken(each) for each in arguments]
        for each in (*values, *named.values()):
            weigh(each, check)
        return function(*values, **named)

    return weigh_first


def _weight(value: object, known: dict[int, int]) -> int:
    """`known` are the weights of containers by their identities. Raises RecursionError."""
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
    """Returns the container itself, or the dictionary behind it."""
    if isinstance(value, Namespace):
        attributes: dict[str, object] = (
            value._Namespace__attrs
        )  # Jinja gives it out by this name alone
        return attributes
    return value.mapping if isinstance(value, _VIEWS) else value
