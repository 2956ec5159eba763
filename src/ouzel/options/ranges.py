"""The values that an option may have, in words for people."""

from msgspec import inspect


def allowed_values(kind: inspect.Type) -> str:
    """Describes the values that the type allows, as in "must be a whole number from 1 to 65535"; empty for others."""
    words = ""
    match kind:
        case inspect.IntType():
            words = f"must be a whole number{_range(kind)}"
        case inspect.FloatType():
            words = f"must be a number{_range(kind)}"
        case inspect.BoolType():
            words = "must be true or false"
        case inspect.VarTupleType(item_type=inspect.StrType(pattern=str(pattern))):
            words = f"each must match {pattern}"
        case inspect.StrType(pattern=str(pattern)):
            words = f"must match {pattern}"
        case inspect.VarTupleType():
            words = "must be a list"
        case inspect.StrType():
            words = "must be a text"
    return words


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {_number(kind.ge)} to {_number(kind.le)}"
    bounds = ((">", kind.gt), (">=", kind.ge), ("<", kind.lt), ("<=", kind.le))
    parts = [f"{sign} {_number(bound)}" for sign, bound in bounds if bound is not None]
    return f" {' and '.join(parts)}" if parts else ""


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)
