"""The shape of a JSON value: its keys and the types of its leaves, without the values.

A leaf of a shape is "string", "number", "boolean" or "null", or "=VALUE" for a key whose value is a part of the
format. A list has the shape of its first element. A leaf that is null in a document may have any value in an answer.
"""

from typing import Any  # JSON

CONSTANT_KEYS = {"object", "role", "type"}


def shape_of(value: Any, key: str = "") -> Any:
    match value:
        case dict():
            return {name: shape_of(inner, name) for name, inner in value.items()}
        case list():
            return [shape_of(value[0])] if value else []
        case str() if key in CONSTANT_KEYS:
            return f"={value}"
        case _:
            return leaf_of(value)


def leaf_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return type(value).__name__


def differences(shape: Any, value: Any, path: str = "") -> list[str]:
    """Returns the places of the shape that the value does not have, or has otherwise."""
    match shape:
        case dict():
            return _differences_of_object(shape, value, path)
        case list():
            return _differences_of_list(shape, value, path)
        case "null":
            return []
        case str() if shape.startswith("="):
            return [] if value == shape[1:] else [f"{path} is {value!r}, not {shape[1:]!r}"]
        case _:
            return [] if leaf_of(value) == shape else [f"{path} is {leaf_of(value)}, not {shape}"]


def _differences_of_object(shape: dict[str, Any], value: Any, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path} is {leaf_of(value)}, not object"]
    found = []
    for name, inner in shape.items():
        place = f"{path}.{name}" if path else name
        found += (
            differences(inner, value[name], place) if name in value else [f"{place} is missing"]
        )
    return found


def _differences_of_list(shape: list[Any], value: Any, path: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{path} is {leaf_of(value)}, not list"]
    if shape and not value:
        return [f"{path} is empty"]
    found = [
        place
        for element in value
        for inner in shape
        for place in differences(inner, element, f"{path}[]")
    ]
    return list(dict.fromkeys(found))


def paths_of(value: Any, path: str = "") -> set[str]:
    """Returns the path of every key in the value: `choices.message.content`."""
    if isinstance(value, list):
        return {place for element in value for place in paths_of(element, path)}
    if not isinstance(value, dict):
        return set()
    found: set[str] = set()
    for name, inner in value.items():
        place = f"{path}.{name}" if path else name
        found |= {place} | paths_of(inner, place)
    return found
