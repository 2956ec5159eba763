"""Finds the places of a page that contain a text."""

import re
from itertools import islice

_MAX_SHOWN = 8
_MAX_COUNTED = 1000  # the pattern may be a single letter
_AROUND = 300  # characters before and after a place


def find_in_text(text: str, pattern: str) -> str:
    """Returns the surroundings of the first places that have the pattern.

    The pattern is plain text. Case does not count, and neither does the kind of spaces, because
    the model does not see how a page breaks its lines.
    """
    words = pattern.split()
    expression = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    found = list(islice(expression.finditer(text), _MAX_COUNTED)) if words else []
    if not found:
        return f"The page does not contain {pattern!r}."
    places: list[str] = []
    shown_until = 0
    for match in found:
        if match.start() < shown_until and places:
            continue  # the place before shows this one
        if len(places) == _MAX_SHOWN:
            break
        start, end = max(match.start() - _AROUND, shown_until), match.end() + _AROUND
        places.append(text[start:end].strip())
        shown_until = end
    count = f"at least {_MAX_COUNTED}" if len(found) == _MAX_COUNTED else str(len(found))
    return f"Places with this text: {count}\n\n" + "\n\n…\n\n".join(places)
