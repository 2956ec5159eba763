"""Limits the size of formats: larger ones are refused before any native code reads them.

The limits are counts, characters and levels, never seconds.
"""

import json

from ouzel.grammar.errors import GrammarError

MAX_GRAMMAR_CHARS = 512 * 1024  # length of the finished grammar text
MAX_FORMAT_CHARS = 256 * 1024  # length of the format as JSON
MAX_LEVELS = 100  # nested arrays and objects; the native JSON reader ends at 128
MAX_PROPERTIES = 1000  # properties of one object
MAX_ALL_PROPERTIES = 5000
MAX_ENUM_VALUES = 10_000  # enum values, and strings to choose from
MAX_LITERAL_CHARS = 10 * 1024
MAX_REFERENCE_LEVELS = 200
MAX_PATTERN_CHARS = 10 * 1024
# Patterns that one text must match: from about 25 on the native code searches without end.
MAX_COMBINED_PATTERNS = 16
# A limit of each divisor, of their sum, and of the product of combined ones: the native code makes
# as many states.
MAX_DIVISOR = 10_000
MAX_TAGS = 1024
MAX_KINDS = 200  # kinds of values of one parameter; alternatives of alternatives multiply
MAX_RULES = 2000
MAX_REPEATS = 10_000
MAX_EXPRESSIONS = 20_000


def check_at_most(what: str, value: int, limit: int) -> None:
    """Raises GrammarError if the value is above the limit."""
    if value > limit:
        raise GrammarError(f"{what} must be <= {limit}, given {value}")


def check_size(value: object) -> None:
    """Raises GrammarError for a format that is too deep or too long, or has text that UTF-8 cannot
    encode.

    The depth is checked first, before any recursive function reads the format.
    """
    check_at_most("the nesting of the format", _levels(value), MAX_LEVELS)
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        raise GrammarError(
            "the format has half of a surrogate pair, which is no character"
        ) from None
    except (TypeError, ValueError) as error:
        raise GrammarError(f"the format is not JSON: {error}") from None
    check_at_most("the number of characters of the format", len(text), MAX_FORMAT_CHARS)


def _levels(value: object) -> int:
    """Counts the nesting, from 0 for a scalar, and stops above the limit."""
    levels, row = 0, [value]
    while row := [
        inner for outer in row if isinstance(outer, dict | list) for inner in _with_itself(outer)
    ]:
        levels += 1
        if levels > MAX_LEVELS:
            break
    return levels


def _with_itself(container: dict[str, object] | list[object]) -> list[object]:
    return list(container.values()) if isinstance(container, dict) else list(container)
