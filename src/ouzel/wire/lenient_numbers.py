"""Accepts 1.0 for an integer and a number inside a string, because clients send these.

Only numbers are lenient. 0, 1 and "true" for a boolean are refused later, as at OpenAI.
"""

import math
import re
from functools import cache

import msgspec
from msgspec import inspect

# a number in JSON, of limited length
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,99})(\.\d{1,99})?([eE][+-]?\d{1,3})?", re.ASCII)


def convert_numbers(body: dict[str, object], body_type: type[msgspec.Struct]) -> object:
    """Returns a copy of `body` in which numbers are converted where the type requires them."""
    return _convert(body, _type_info(body_type))


@cache
def _type_info(body_type: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(body_type)


def _convert(value: object, kind: inspect.Type) -> object:
    plain = value
    match kind, value:
        case inspect.StructType(fields=fields), dict():
            kinds = {field.encode_name: field.type for field in fields}
            plain = {
                key: _convert(entry, kinds[key]) if key in kinds else entry
                for key, entry in value.items()
            }
        case inspect.DictType(value_type=entry_kind), dict():
            plain = {key: _convert(entry, entry_kind) for key, entry in value.items()}
        case inspect.ListType(item_type=entry_kind), list():
            plain = [_convert(entry, entry_kind) for entry in value]
        case inspect.UnionType(types=kinds), _:
            plain = _convert_union(value, kinds)
        case inspect.Metadata(type=inner), _:
            plain = _convert(value, inner)
        case inspect.IntType(), str() | float():
            number = _parse_number(value)
            plain = int(number) if isinstance(number, float) and number.is_integer() else number
        case inspect.FloatType(), str():
            plain = _parse_number(value)
    return plain


def _convert_union(value: object, kinds: tuple[inspect.Type, ...]) -> object:
    if isinstance(value, str) and any(isinstance(kind, inspect.StrType) for kind in kinds):
        return value
    for kind in kinds:
        plain = _convert(value, kind)
        if plain != value or type(plain) is not type(value):
            return plain
    return value


def _parse_number(value: str | float) -> object:
    """Returns the number in `value`, or `value` itself if it is not a number."""
    if isinstance(value, float) or not _NUMBER.fullmatch(value):
        return value
    number = int(value) if value.removeprefix("-").isdecimal() else float(value)
    return number if math.isfinite(number) else value
