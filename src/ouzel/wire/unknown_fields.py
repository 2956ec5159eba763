"""Finds unknown fields: keys of a body that no struct takes, at any depth.

Only structs have unknown fields. Free objects (JSON schemas, labels, messages, template variables)
are not searched.
"""

from collections.abc import Iterator
from functools import cache

import msgspec
from msgspec import inspect

from ouzel.wire.validation_errors import Step, format_path

JsonObject = dict[str, object]
StructType = type[msgspec.Struct]


def unknown_fields(body: JsonObject, request: msgspec.Struct) -> set[str]:
    """Returns the paths of unknown fields, such as `tools[0].function.colour`.

    `request` is the struct that was converted from `body`.
    """
    return {format_path(steps) for steps in _find_unknown(body, request, ())}


def _find_unknown(
    value: object, target: object, steps: tuple[Step, ...]
) -> Iterator[tuple[Step, ...]]:
    match target, value:
        case msgspec.Struct(), dict():
            kind = type(target)
            for key in value.keys() - _list_keys(kind):
                yield (*steps, key)
            for name, key in _find_holders(kind):
                if key in value:
                    yield from _find_unknown(value[key], getattr(target, name), (*steps, key))
        case dict(), dict():
            for key, entry in target.items():
                yield from _find_unknown(value[key], entry, (*steps, key))
        case list(), list():
            for at, (entry, target_entry) in enumerate(zip(value, target, strict=True)):
                yield from _find_unknown(entry, target_entry, (*steps, at))


@cache
def _list_keys(kind: StructType) -> frozenset[str]:
    tag_field = kind.__struct_config__.tag_field
    return frozenset(kind.__struct_encode_fields__) | (
        {tag_field} if tag_field is not None else set()
    )


@cache
def _find_holders(kind: StructType) -> tuple[tuple[str, str], ...]:
    """Returns name and key of the fields whose values may be, or contain, structs."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return tuple(
        (field.name, field.encode_name) for field in info.fields if _holds_structs(field.type)
    )


def _holds_structs(kind: inspect.Type) -> bool:
    match kind:
        case inspect.StructType():
            return True
        case inspect.UnionType(types=kinds):
            return any(map(_holds_structs, kinds))
        case (
            inspect.Metadata(type=inner)
            | inspect.ListType(item_type=inner)
            | inspect.DictType(value_type=inner)
        ):
            return _holds_structs(inner)
        case _:
            return False
