"""What a body has that none of its structs takes, at every depth.

Only structs have fields that can be unknown. What is free by its type (JSON schemas, labels, messages, arguments of
templates) is not looked into.
"""

from collections.abc import Iterator
from functools import cache

import msgspec
from msgspec import inspect

from ouzel.wire.validation_errors import Step, path_of

JsonObject = dict[str, object]
StructType = type[msgspec.Struct]


def unknown_fields(given: JsonObject, body: msgspec.Struct) -> set[str]:
    """`body` is what `given` was converted to. As in `tools[0].function.colour`."""
    return {path_of(steps) for steps in _unknown(given, body, ())}


def _unknown(given: object, taken: object, steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    match taken, given:
        case msgspec.Struct(), dict():
            kind = type(taken)
            for key in given.keys() - _fields(kind):
                yield (*steps, key)
            for name, key in _holders(kind):
                if key in given:
                    yield from _unknown(given[key], getattr(taken, name), (*steps, key))
        case dict(), dict():
            for key, entry in taken.items():
                yield from _unknown(given[key], entry, (*steps, key))
        case list(), list():
            for at, (entry, taken_entry) in enumerate(zip(given, taken, strict=True)):
                yield from _unknown(entry, taken_entry, (*steps, at))


@cache
def _fields(kind: StructType) -> frozenset[str]:
    tag_field = kind.__struct_config__.tag_field
    return frozenset(kind.__struct_encode_fields__) | ({tag_field} if tag_field is not None else set())


@cache
def _holders(kind: StructType) -> tuple[tuple[str, str], ...]:
    """Name and key of the fields whose values may be, or hold, structs."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return tuple((field.name, field.encode_name) for field in info.fields if _holds_structs(field.type))


def _holds_structs(kind: inspect.Type) -> bool:
    match kind:
        case inspect.StructType():
            return True
        case inspect.UnionType(types=kinds):
            return any(map(_holds_structs, kinds))
        case inspect.Metadata(type=inner) | inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            return _holds_structs(inner)
        case _:
            return False
