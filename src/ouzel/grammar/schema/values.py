"""Checks the value of each keyword by itself, and converts it for the engine."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal

from ouzel.grammar.caps import (
    MAX_DIVISOR,
    MAX_ENUM_VALUES,
    MAX_LITERAL_CHARS,
    MAX_PROPERTIES,
    check_at_most,
)
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.write.regex import search_pattern

MAX_NUMBER = 10**18  # limit of bounds; the engine's integers have 64 bits
LOWER_BOUNDS = frozenset(("minimum", "exclusiveMinimum"))
UPPER_BOUNDS = frozenset(("maximum", "exclusiveMaximum"))
COUNTS = frozenset(
    ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
)
ESCAPES = r'"\nrtbf'  # not `u`: it could spell a listed name within an unlisted one
TYPES = frozenset(["string", "number", "integer", "boolean", "null", "array", "object"])
# characters that ESCAPES cannot write
_UNSPEAKABLE = frozenset(map(chr, [*range(0x20), 0x7F])) - frozenset("\n\r\t\b\f")


def for_engine(keyword: str, value: object) -> object:
    """Converts a value for the engine: tightens bounds that it cannot compare, makes 2.0 items 2,
    rewrites patterns.
    """
    if keyword == "pattern" and isinstance(value, str):
        return search_pattern(value, keyword)
    if keyword in COUNTS and isinstance(value, float):
        return int(value)
    if keyword in UPPER_BOUNDS and isinstance(value, int | float):
        return min(value, MAX_NUMBER)
    if keyword in LOWER_BOUNDS and isinstance(value, int | float):
        return max(value, -MAX_NUMBER)
    return value


def _check_type(value: object, path: str) -> None:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise GrammarError(f"{path} must be one of {', '.join(sorted(TYPES))}, given {name!r}")
    if not names:
        raise GrammarError(f"{path} must not be empty")


def _check_count(value: object, path: str) -> None:
    is_whole = (
        isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    )
    if not is_whole or not isinstance(value, int | float) or value < 0:
        raise GrammarError(f"{path} must be an integer >= 0, given {value!r}")


def _check_number(value: object, path: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise GrammarError(f"{path} must be a number, given {value!r}")


def _check_exact(value: object, path: str) -> None:
    """Raises GrammarError for a number that the engine would round.

    It reads 53 bits times a power of ten up to 22.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    _, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    is_exact = isinstance(exponent, int) and exponent >= -22 and int(text) <= 2**53
    if not is_exact or abs(value) > MAX_NUMBER:
        raise GrammarError(
            f"{path} must be a number of at most 15 digits, down to 1e-22 and up to "
            f"{MAX_NUMBER:.0e}, given {value!r}"
        )


def _check_bound(value: object, path: str) -> None:
    _check_number(value, path)
    if for_engine(path.rpartition("/")[2], value) == value:
        _check_exact(value, path)


def _check_divisor(value: object, path: str) -> None:
    _check_number(value, path)
    if isinstance(value, int | float) and value <= 0:
        raise GrammarError(f"{path} must be > 0, given {value!r}")
    _check_exact(value, path)
    check_at_most(
        f"{path} without its decimal point and zeros at its end", significand(value), MAX_DIVISOR
    )


def significand(value: object) -> int:
    """Returns the digits of a number without decimal point and zeros at its end: 7 for 0.07 and
    700.
    """
    digits = Decimal(repr(value)).as_tuple().digits
    return int("".join(map(str, digits)).rstrip("0") or "0")


def _check_names(value: object, path: str) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise GrammarError(f"{path} must be a list of strings")
    check_at_most(f"the number of names at {path}", len(value), MAX_PROPERTIES)


def _check_pattern(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise GrammarError(f"{path} must be a string")
    search_pattern(value, path)


def _check_constant(value: object, path: str) -> None:
    check_at_most(
        f"the number of characters of {path}",
        len(json.dumps(value, ensure_ascii=False)),
        MAX_LITERAL_CHARS,
    )
    for part in _scalars(value):
        _check_exact(part, path)
        if isinstance(part, str) and not _UNSPEAKABLE.isdisjoint(part):
            raise GrammarError(
                f"{path} must have no control characters except line ends, tabs and form feeds"
            )


def _scalars(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _scalars(inner)
    else:
        yield value


def _check_enum(value: object, path: str) -> None:
    if not isinstance(value, list) or not value:
        raise GrammarError(f"{path} must be a non-empty list of values")
    check_at_most(f"the number of values at {path}", len(value), MAX_ENUM_VALUES)
    for index, item in enumerate(value):
        _check_constant(item, f"{path}/{index}")


CHECKS: dict[str, Callable[[object, str], None]] = {
    "type": _check_type,
    "enum": _check_enum,
    "const": _check_constant,
    "required": _check_names,
    "pattern": _check_pattern,
    "multipleOf": _check_divisor,
    **dict.fromkeys(LOWER_BOUNDS | UPPER_BOUNDS, _check_bound),
    **dict.fromkeys(COUNTS, _check_count),
}
