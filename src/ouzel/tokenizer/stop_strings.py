"""Finds stop strings in a text that arrives in pieces.

The stop string that is complete first wins, or the longest of several with the same end. So the
result does not depend on the places where the text was cut. Text is held back only while it is the
beginning of a stop string. Each stop string is followed with its Knuth-Morris-Pratt table, which
takes linear time.
"""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class StopResult:
    text: str  # the text for the user
    matched: str | None  # the stop string that ended the text; nothing may be fed after it


class StopStringMatcher:
    """Finds the stop strings of one choice.

    With `include_in_output`, the matched string is part of the text, and nothing is held back.
    """

    def __init__(self, stop_strings: tuple[str, ...], include_in_output: bool = False) -> None:
        assert all(stop_strings), "an empty stop string is refused by the decoder"
        self._progress = [_Progress(stop_string) for stop_string in stop_strings]
        self._first_characters = {stop_string[0] for stop_string in stop_strings}
        self._include_in_output = include_in_output
        self._num_matched = 0  # characters at the end of the text that may begin a stop string
        self._pending = ""

    def feed(self, text: str) -> StopResult:
        if not self._num_matched and self._first_characters.isdisjoint(text):
            return StopResult(text, None)
        seen = self._pending + text
        for end, character in enumerate(text, start=len(self._pending) + 1):
            completed = [each.pattern for each in self._progress if each.advance(character)]
            if completed:
                matched = max(completed, key=len)
                self._pending = ""
                shown_end = end if self._include_in_output else end - len(matched)
                return StopResult(seen[:shown_end], matched)
        self._num_matched = max(progress.num_matched for progress in self._progress)
        num_held = 0 if self._include_in_output else self._num_matched
        final, self._pending = seen[: len(seen) - num_held], seen[len(seen) - num_held :]
        return StopResult(final, None)

    def finish(self) -> str:
        """Returns the text that was held back and did not become a stop string."""
        pending, self._pending = self._pending, ""
        return pending


class _Progress:
    """The number of characters of one stop string at the end of the text so far."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.num_matched = 0
        self._borders = _borders(pattern)

    def advance(self, character: str) -> bool:
        """Adds a character to the text, and tells whether the stop string is complete."""
        while self.num_matched and self.pattern[self.num_matched] != character:
            self.num_matched = self._borders[self.num_matched]
        if self.pattern[self.num_matched] == character:
            self.num_matched += 1
        return self.num_matched == len(self.pattern)


@lru_cache  # the choices of a request, and often many requests, share their stop strings
def _borders(pattern: str) -> tuple[int, ...]:
    """Returns, for each prefix length, the length of the longest shorter prefix that is also a
    suffix of the prefix.
    """
    borders = [0, 0]
    for character in pattern[1:]:
        length = borders[-1]
        while length and pattern[length] != character:
            length = borders[length]
        borders.append(length + 1 if pattern[length] == character else 0)
    return tuple(borders)
