"""Clients send 1.0 for an integer, or a number inside a string, and mean the number.

Nothing else is lenient. OpenAI refuses 0, 1 and "true" for a boolean, and so does the strict conversion that follows.
"""

import math
import re
from functools import cache

import msgspec
from msgspec import inspect

_NUMBER = re.compile(
    r"-?(0|[1-9]\d{0,99})(\.\d{1,99})?([eE][+-]?\d{1,3})?", re.ASCII
)  # JSON's, and not endless


def with_plain_numbers(body: dict[str, object], body_type: type[msgspec.Struct]) -> object:
    """Returns a copy of `body` with a number wherever the type asks for one and the value can be read as one."""
    return _plain(body, _type_info(body_type))


@cache
def _type_info(body_type: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(body_type)


def _plain(value: object, kind: inspect.Type) -> object:
    plain = value
    match kind, value:
        case inspect.StructType(fields=fields), dict():
            kinds = {field.encode_name: field.type for field in fields}
            plain = {
                key: _plain(entry, kinds[key]) if key in kinds else entry
                for key, entry in value.items()
            }
        case inspect.DictType(value_type=entry_kind), dict():
            plain = {key: _plain(entry, entry_kind) for key, entry in value.items()}
        case inspect.ListType(item_type=entry_kind), list():
            plain = [_plain(entry, entry_kind) for entry in value]
        case inspect.UnionType(types=kinds), _:
            plain = _plain_of_union(value, kinds)
        case inspect.Metadata(type=inner), _:
            plain = _plain(value, inner)
        case inspect.IntType(), str() | float():
            number = _number(value)
            plain = int(number) if isinstance(number, float) and number.is_integer() else number
        case inspect.FloatType(), str():
            plain = _number(value)
    return plain


def _plain_of_union(value: object, kinds: tuple[inspect.Type, ...]) -> object:
    if isinstance(value, str) and any(isinstance(kind, inspect.StrType) for kind in kinds):
        return value
    for kind in kinds:
        plain = _plain(value, kind)
        if plain != value or type(plain) is not type(value):
            return plain
    return value


def _number(value: str | float) -> object:
    """Returns the value itself where it is no number."""
    if isinstance(value, float) or not _NUMBER.fullmatch(value):
        return value
    number = int(value) if value.removeprefix("-").isdecimal() else float(value)
    return number if math.isfinite(number) else value
