"""Makes errors for values of the wrong type, in JSON's terms."""

from ouzel.errors import InvalidRequest


def invalid(path: str, expected: str, value: object) -> InvalidRequest:
    """Makes the error of a field. `path` is the field's."""
    return InvalidRequest(f"must be {expected}, given {describe_value(value)}", field=path)


def describe_value(value: object) -> str:
    """Describes a value in a few words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return f'"{value[:40]}"'
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "an object"
