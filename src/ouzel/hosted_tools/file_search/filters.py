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
        return lambda attributes: _matches(comparison, attributes.get(comparison.key))

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


def _matches(comparison: Comparison, attribute: Attribute | None) -> bool:
    value = comparison.value
    values = value if isinstance(value, list) else [value]
    alike = [each for each in values if _are_alike(attribute, each)]
    match comparison.type:
        case "eq" | "in":
            return attribute in alike
        case "ne" | "nin":
            return attribute not in alike
        case order:
            return attribute is not None and any(_ORDERS[order](attribute, each) for each in alike)


def _are_alike(attribute: Attribute | None, value: Attribute) -> bool:
    """Tells whether two values can be compared: True is no number."""
    kinds = {
        "boolean" if isinstance(each, bool) else "text" if isinstance(each, str) else "number"
        for each in (attribute, value)
        if each is not None
    }
    return attribute is not None and len(kinds) == 1
