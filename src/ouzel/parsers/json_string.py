"""Decodes JSON strings leniently: line breaks are allowed, and invalid escapes stay unchanged."""

import json
import re

from ouzel.parsers.reading_parser import Give

_UNIT = re.compile(
    r'[^"\\]+|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_BEGUN_UNIT = re.compile(
    r"\\(u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(\\(u[0-9a-fA-F]{0,3})?)?)?"
)


def decoded_string(text: str) -> str | None:
    """Decodes a whole JSON string; None for another value, a broken string or half a surrogate
    pair.
    """
    if not text.startswith('"'):
        return None
    try:
        value = str(json.loads(text, strict=False))
        value.encode()
        return value
    except ValueError:
        return None


class StringDecoding:
    """Decodes a string while it arrives. Quotes are removed, and half an escape at the end is
    dropped.
    """

    def __init__(self, give: Give) -> None:
        self._give = give
        self._held = ""
        self._has_begun = False

    def feed(self, text: str) -> None:
        self._held += text if self._has_begun else text.removeprefix('"')
        self._has_begun = self._has_begun or text != ""
        while self._held not in ("", '"') and not _BEGUN_UNIT.fullmatch(self._held):
            unit = _UNIT.match(self._held)
            raw = unit[0] if unit else self._held[0]
            decoded = decoded_string(f'"{raw}"') if unit else None
            self._held = self._held[len(raw) :]
            self._give(raw if decoded is None else decoded)

    def end(self) -> None:
        """Ends the string. An incomplete escape at its end is forwarded unchanged."""
        self._give(self._held)
        self._held = ""
