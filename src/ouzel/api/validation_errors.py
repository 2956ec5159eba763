"""msgspec's complaints in the words of our other errors: the field's path, the limit, the given value."""

import re

import msgspec

from ouzel.errors import InvalidRequest

JsonObject = dict[str, object]

_MAX_NAME_CHARS = 40  # of a name that the client made up

_TYPE_NAMES = {"int": "an integer", "float": "a number", "str": "a string", "bool": "true or false"} | {
    "array": "a list",
    "object": "an object",
}

# What msgspec says, and how we say it.
_COMPLAINTS = (
    (r"Expected `(?:int|float)` (\S+ \S+)", "must be {}"),
    (r"Expected `\w+` of length (.+)", "must have a length {}"),
    (r"Expected `(.+)`, got `.+`", "must be {}"),
    (r"(Invalid enum value) .*", "must be one of the documented values"),
)
_COMPLAINTS_ABOUT_FIELDS = (
    (r"Object missing required field `(.+)`", "is required"),
    (r"Object contains unknown field `(.+)`", "is not a field of this object"),
)


def invalid_request(message: str, given: JsonObject, body_type: type[msgspec.Struct]) -> InvalidRequest:
    """Says what msgspec said, in the words of the other errors."""
    what, mark, at = message.rpartition(" - at `$")  # the last: what stands before may quote the client
    if not mark:
        what, at = message, ""
    path = at.rstrip("`").lstrip(".")
    if path.endswith("[...]"):
        path, value_at_fault = _entry_at_fault(path.removesuffix("[...]"), given, body_type)
    else:
        value_at_fault = _value_at(path, given)
    value = shown(value_at_fault)
    for pattern, complaint in _COMPLAINTS:
        if match := re.fullmatch(pattern, what, re.DOTALL):
            limit = _either(match[1]) if "got" in pattern else match[1]
            return InvalidRequest(f"{path} {complaint.format(limit)}, given {value}", param=path)
    for pattern, complaint in _COMPLAINTS_ABOUT_FIELDS:
        if match := re.fullmatch(pattern, what, re.DOTALL):
            name = match[1][:_MAX_NAME_CHARS]
            field = f"{path}.{name}" if path else name
            return InvalidRequest(f"{field} {complaint}", param=field)
    return InvalidRequest(f"{path}: {what}, given {value}", param=path or None)


def _entry_at_fault(field: str, given: JsonObject, body_type: type[msgspec.Struct]) -> tuple[str, object]:
    """Its path and value. msgspec does not say which entry of an object it is: the first that fails alone."""
    entries = given[field]
    assert isinstance(entries, dict)  # all our maps are at the top level
    for key, value in entries.items():
        try:
            msgspec.convert({**given, field: {key: value}}, body_type, strict=False)
        except msgspec.ValidationError:
            return f"{field}.{key[:_MAX_NAME_CHARS]}", value
    return field, entries


def _value_at(path: str, given: JsonObject) -> object:
    value: object = given
    for name, position in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and position:
            value = value[int(position)]
    return value


def _either(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null"]
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names)


def shown(value: object) -> str:
    """Short, in JSON's words."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:60]}… ({len(text)} characters)"
