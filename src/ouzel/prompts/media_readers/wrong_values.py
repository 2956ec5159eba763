"""What is wrong with a value is said in JSON's words."""

from ouzel.errors import InvalidRequest


def invalid(path: str, expected: str, value: object) -> InvalidRequest:
    """`path` is the field's."""
    return InvalidRequest(f"must be {expected}, given {shown(value)}", field=path)


def shown(value: object) -> str:
    """Describes the value shortly."""
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
