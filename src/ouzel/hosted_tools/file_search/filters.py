"""Reads and applies filters over the attributes of files, as OpenAI defines them."""

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest

Attribute = str | float | bool
Attributes = Mapping[str, Attribute]
Filter = Callable[[Attributes], bool]
_MAX_DEPTH = 8
_MAX_COMPARISONS = 128  # the comparisons of one filter
_MAX_VALUES = 1000

_ORDERS: dict[str, Callable[[Attribute, Attribute], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


class Comparison(msgspec.Struct, frozen=True):
    """Compares one attribute. A file without the attribute matches `ne` and `nin` only."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Annotated[str, Meta(min_length=1, max_length=64)]
    value: Attribute | Annotated[list[Attribute], Meta(max_length=_MAX_VALUES)]


class Compound(msgspec.Struct, frozen=True):
    type: Literal["and", "or"]
    filters: list[dict[str, object]]


Record = TypeVar("Record", Comparison, Compound)


def read_filter(fields: Mapping[str, object], path: str = "filters") -> Filter:
    """Returns the filter as a function of attributes. Raises InvalidRequest."""
    return _Reader().read(fields, path, depth=1)


class _Reader:
    def __init__(self) -> None:
        self._num_comparisons = 0

    def read(self, fields: Mapping[str, object], path: str, *, depth: int) -> Filter:
        if fields.get("type") in ("and", "or"):
            return self._read_compound(_convert(fields, Compound, path), path, depth)
        self._num_comparisons += 1
        if self._num_comparisons > _MAX_COMPARISONS:
            raise InvalidRequest(f"must have <= {_MAX_COMPARISONS} comparisons", field=path)
        comparison = _convert(fields, Comparison, path)
        _check_value(comparison, path)
        return _make_test(comparison)

    def _read_compound(self, compound: Compound, path: str, depth: int) -> Filter:
        if depth > _MAX_DEPTH:
            raise InvalidRequest(f"must be nested <= {_MAX_DEPTH} times", field=path)
        parts = [
            self.read(each, f"{path}.filters[{place}]", depth=depth + 1)
            for place, each in enumerate(compound.filters)
        ]
        joins = all if compound.type == "and" else any
        return lambda attributes: joins(part(attributes) for part in parts)


def _convert(fields: Mapping[str, object], kind: type[Record], path: str) -> Record:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"must be a filter: {error}", field=path) from None


def _check_value(comparison: Comparison, path: str) -> None:
    value, field = comparison.value, f"{path}.value"
    takes_list = comparison.type in ("in", "nin")
    if takes_list != isinstance(value, list):
        expected = "a list" if takes_list else "a text, a number or a boolean"
        raise InvalidRequest(f"must be {expected} for the type {comparison.type}", field=field)
    if comparison.type in _ORDERS and isinstance(value, bool):
        raise InvalidRequest(
            f"must be a number or a text for the type {comparison.type}", field=field
        )


def _make_test(comparison: Comparison) -> Filter:
    """Returns a quick function: a search calls it for each file."""
    key, value = comparison.key, comparison.value
    order = _ORDERS.get(comparison.type)
    if order is not None:
        assert not isinstance(value, list)
        return lambda attributes: (
            _classify(attributes.get(key)) == _classify(value) and order(attributes[key], value)
        )
    values = value if isinstance(value, list) else [value]
    known = frozenset((_classify(each), each) for each in values)
    is_wanted = comparison.type in ("eq", "in")
    return lambda attributes: (
        ((_classify(attributes.get(key)), attributes.get(key)) in known) is is_wanted
    )


def _classify(value: Attribute | None) -> str:
    """Returns the kind of a value; values of different kinds are never equal: True is no number."""
    match value:
        case None:
            return "none"
        case bool():
            return "boolean"
        case str():
            return "text"
        case _:
            return "number"
