"""JSON strings are decoded. Line breaks in them are forgiven, and what is no escape stays as it was written."""

import json
import re

from ouzel.parsers.reading_parser import Give

_UNIT = re.compile(
    r'[^"\\]+|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'
)
_BEGUN_UNIT = re.compile(
    r"\\(u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(\\(u[0-9a-fA-F]{0,3})?)?)?"
)


def decoded_string(text: str) -> str | None:
    """Decodes a whole JSON string; None when the value is none, broken, or no text (half a surrogate pair)."""
    if not text.startswith('"'):
        return None
    try:
        value = str(json.loads(text, strict=False))
        value.encode()
        return value
    except ValueError:
        return None


class StringDecoding:
    """Gives what a string stands for while it comes, quotes included; half an escape at the end is dropped."""

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
        """Gives what looks like half an escape as it was written: the string has ended there, it was not cut."""
        self._give(self._held)
        self._held = ""
