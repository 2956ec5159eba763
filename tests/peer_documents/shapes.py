"""Compares the shapes of JSON values: keys and types of the leaves, without the values.

A leaf of a shape is "string", "number", "boolean" or "null", or "=VALUE" for a key whose value is a
part of the format. A list has the shape of its first element. A leaf that is null in a document may
have any value in an answer.
"""

from typing import Any  # JSON

CONSTANT_KEYS = {"object", "role", "type"}


def build_shape(value: Any, key: str = "") -> Any:
    match value:
        case dict():
            return {name: build_shape(inner, name) for name, inner in value.items()}
        case list():
            return [build_shape(value[0])] if value else []
        case str() if key in CONSTANT_KEYS:
            return f"={value}"
        case _:
            return name_leaf(value)


def name_leaf(value: object) -> str:
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


def find_differences(shape: Any, value: Any, path: str = "") -> list[str]:
    """Returns the paths of the shape that the value lacks, or has with another type."""
    match shape:
        case dict():
            return _compare_objects(shape, value, path)
        case list():
            return _compare_lists(shape, value, path)
        case "null":
            return []
        case str() if shape.startswith("="):
            return [] if value == shape[1:] else [f"{path} is {value!r}, not {shape[1:]!r}"]
        case _:
            return (
                [] if name_leaf(value) == shape else [f"{path} is {name_leaf(value)}, not {shape}"]
            )


def _compare_objects(shape: dict[str, Any], value: Any, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path} is {name_leaf(value)}, not object"]
    found = []
    for name, inner in shape.items():
        place = f"{path}.{name}" if path else name
        found += (
            find_differences(inner, value[name], place)
            if name in value
            else [f"{place} is missing"]
        )
    return found


def _compare_lists(shape: list[Any], value: Any, path: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{path} is {name_leaf(value)}, not list"]
    if shape and not value:
        return [f"{path} is empty"]
    found = [
        place
        for element in value
        for inner in shape
        for place in find_differences(inner, element, f"{path}[]")
    ]
    return list(dict.fromkeys(found))


def list_paths(value: Any, path: str = "") -> set[str]:
    """Returns the path of every key in the value, such as `choices.message.content`."""
    if isinstance(value, list):
        return {place for element in value for place in list_paths(element, path)}
    if not isinstance(value, dict):
        return set()
    found: set[str] = set()
    for name, inner in value.items():
        place = f"{path}.{name}" if path else name
        found |= {place} | list_paths(inner, place)
    return found
