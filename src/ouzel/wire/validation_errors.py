"""Turns msgspec's errors into ours: the field's path, the limit and the value given."""

import re
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType

import msgspec
from msgspec import inspect

from ouzel.errors import InvalidRequest

JsonObject = dict[str, object]
# a field, an item of a list, or an entry of a map that msgspec does not name
Step = str | int | EllipsisType

NOT_A_FIELD = "is not a field of this object"
_MAX_NAME_CHARS = 40  # the longest part shown of a name that the client made up

_TYPE_NAMES = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}

# msgspec's messages, and ours. `{}` stands for the group, the allowed types or the values of an
# enum.
_COMPLAINTS = (
    (r"Expected `(?:int|float)` (\S+ \S+)", "must be {}"),
    (r"Expected `\w+` of length (.+)", "must have a length {}"),
    (r"Expected `\w+` matching regex '(.+)'", "must match {}"),
    (r"Expected `(.+)`, got `.+`", "must be {}"),
    (r"(Invalid (?:enum )?value) .*", "must be one of {}"),
    (r"(?:Number|Integer value) (out of range)", "must be a number of at most 64 bits"),
)
_COMPLAINTS_ABOUT_FIELDS = (
    (r"Object missing required field `(.+)`", "is required"),
    (r"Object contains unknown field `(.+)`", NOT_A_FIELD),
)


class UnreadableValue(InvalidRequest):
    """Refuses JSON that no Python number or text can hold; field names are not checked yet."""


def invalid_request(
    message: str, body: JsonObject, body_type: type[msgspec.Struct]
) -> InvalidRequest:
    """Translates msgspec's error message about `body`."""
    of_key, key_mark, place = message.rpartition(" - at `key` in `$")
    if key_mark:
        return _invalid_key(of_key, list(_steps(place.rstrip("`"))), body)
    # The last mark counts: the text before may quote the client.
    what, mark, at = message.rpartition(" - at `$")
    if not mark:
        what, at = message, ""
    steps = list(_steps(at.rstrip("`")))
    if ... in steps:
        steps = _with_entry_at_fault(steps, body, body_type)
    path, value = format_path(steps), show_value(_value_at(steps, body))
    for pattern, complaint in _COMPLAINTS:
        if match := re.fullmatch(pattern, what, re.DOTALL):
            limit = match[1]
            if "got" in pattern:
                limit = _join_types(match[1])
            elif "value" in pattern and "Invalid" in pattern:
                allowed = _values_at(steps, inspect.type_info(body_type))
                limit = ", ".join(dict.fromkeys(map(show_value, allowed)))
            return InvalidRequest(f"{complaint.format(limit)}, given {value}", field=path)
    for pattern, complaint in _COMPLAINTS_ABOUT_FIELDS:
        if match := re.fullmatch(pattern, what, re.DOTALL):
            field = format_path([*steps, match[1]])
            wrong = _value_at([*steps, match[1]], body)
            value = "" if wrong is None else f", given {show_value(wrong)}"
            return InvalidRequest(f"{complaint}{value}", field=field)
    return InvalidRequest(f"{path}: {what}, given {value}", param=path or None)


def _invalid_key(what: str, steps: list[Step], body: JsonObject) -> InvalidRequest:
    path, names = format_path(steps), _value_at(steps, body)
    # only the lengths of names are limited
    longest = max(names, key=len) if isinstance(names, dict) else None
    for pattern, complaint in _COMPLAINTS:
        if match := re.fullmatch(pattern, what, re.DOTALL):
            return InvalidRequest(
                f": each name {complaint.format(match[1])}, given {show_value(longest)}", field=path
            )
    return InvalidRequest(f": {what}, given {show_value(longest)}", field=path)


def format_path(steps: Sequence[Step]) -> str:
    """Formats a path such as `messages[2].content`; replaces lone surrogates in its names."""
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{str(step)[:_MAX_NAME_CHARS]}"
        for step in steps
    )
    return path.removeprefix(".").encode(errors="replace").decode()


def find_path(value: object, is_at_fault: Callable[[object], bool]) -> list[Step] | None:
    """Returns the path of the first value that is at fault, in reading order, or None."""
    if is_at_fault(value):
        return []
    entries: Iterator[tuple[Step, object]] = iter(())
    if isinstance(value, dict):
        entries = iter(value.items())
    elif isinstance(value, list):
        entries = iter(enumerate(value))
    for step, entry in entries:
        if (steps := find_path(entry, is_at_fault)) is not None:
            return [step, *steps]
    return None


def show_value(value: object) -> str:
    """Returns a value as JSON text; of a long value, the beginning and the length."""
    try:
        text = msgspec.json.encode(value).decode()
    except RecursionError:
        return "a value that is nested too deeply"
    return text if len(text) <= 60 else f"{text[:60]}… ({len(text)} characters)"


def _steps(at: str) -> Iterator[Step]:
    for name, position in re.findall(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]", at):
        yield name or (... if position == "..." else int(position))


def _with_entry_at_fault(
    steps: list[Step], body: JsonObject, body_type: type[msgspec.Struct]
) -> list[Step]:
    """Replaces the first `...` in `steps` by the key of the first entry that fails by itself.

    msgspec does not name the faulty entry of a map.
    """
    depth = steps.index(...)
    entries = _value_at(steps[:depth], body)
    assert isinstance(entries, dict)
    for key, value in entries.items():
        try:
            msgspec.convert(_replace(body, steps[:depth], {key: value}), body_type)
        except msgspec.ValidationError:
            return [*steps[:depth], key, *steps[depth + 1 :]]
    return steps[:depth]


def _replace(value: object, steps: Sequence[Step], new: object) -> object:
    if not steps:
        return new
    if isinstance(value, dict):
        return {
            key: _replace(old, steps[1:], new) if key == steps[0] else old
            for key, old in value.items()
        }
    assert isinstance(value, list)
    return [
        _replace(old, steps[1:], new) if at == steps[0] else old for at, old in enumerate(value)
    ]


def _value_at(steps: Sequence[Step], body: object) -> object:
    value = body
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
    return value


def _values_at(steps: Sequence[Step], kind: inspect.Type) -> Iterator[object]:
    """Yields the allowed values of the enum or tag field at the end of `steps`."""
    match kind:
        case inspect.UnionType(types=kinds):
            for each in kinds:
                yield from _values_at(steps, each)
        case inspect.Metadata(type=inner):
            yield from _values_at(steps, inner)
        case inspect.LiteralType(values=values) if not steps:
            yield from values
        case inspect.StructType(tag_field=str(name), tag=tag) if steps == [name]:
            yield tag
        case inspect.StructType(fields=fields) if steps:
            for field in fields:
                if field.encode_name == steps[0]:
                    yield from _values_at(steps[1:], field.type)
        case inspect.DictType(value_type=inner) | inspect.ListType(item_type=inner) if steps:
            yield from _values_at(steps[1:], inner)


def _join_types(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null"]
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names)
