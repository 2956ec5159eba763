"""Provides the base of all families' parsers: plain code for a text that arrives in pieces.

A parser is a generator. It reads on, and yields when it needs more text. Text that it has passed
but not committed can be read again, so a call that turns out to be invalid becomes content, as it
was written.

The joined deltas must not depend on the places where the text was cut. The readers here ensure it:
they decide nothing while the text at hand may still continue.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from ouzel.parsers.base import ContentDelta, Delta, ReasoningDelta, ToolCallDelta, new_call_id
from ouzel.types.step_output import FinishReason

Result = TypeVar("Result")
Reading = Generator[None, None, Result]
Give = Callable[[str], None]

WHITESPACE = " \t\r\n"
_NAME_MARKS = "_-.:/"


class ReadingParser:
    """Parses with a generator, `read`, which reads the text from `_at` on."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._is_ended = False
        self._is_cut = False  # the output ended early: the model would have written more
        self._deltas: list[Delta] = []
        self._num_calls = 0
        self._blank = ""  # whitespace before the last marker, which belongs to the marker
        self._is_after_text = False  # the last marker turned out to be text
        self._reading = self.read()

    def read(self) -> Reading[None]:
        """Reads the whole output. The text that it leaves unread at the end becomes content."""
        raise NotImplementedError

    def feed(self, text: str) -> list[Delta]:
        self._text += text
        return self._read_on()

    def finish(self, reason: FinishReason) -> list[Delta]:
        self._is_ended, self._is_cut = True, reason is FinishReason.LENGTH
        deltas = self._read_on()
        rest, self._text = self._text, ""
        return deltas + ([ContentDelta(rest)] if rest else [])

    def _read_on(self) -> list[Delta]:
        next(self._reading, None)
        deltas, self._deltas = self._deltas, []
        return deltas

    # Output

    def content(self, text: str) -> None:
        if text:
            self._deltas.append(ContentDelta(text))

    def reasoning(self, text: str) -> None:
        if text:
            self._deltas.append(ReasoningDelta(text))

    def open_call(self, name: str, call_id: str | None = None) -> None:
        self._deltas.append(ToolCallDelta(self._num_calls, call_id or new_call_id(), name))
        self._num_calls += 1

    def arguments(self, text: str) -> None:
        """Adds the next piece of arguments to the last opened call."""
        if text:
            self._deltas.append(ToolCallDelta(self._num_calls - 1, arguments=text))

    # Reading ahead and back

    def commit(self) -> None:
        """Drops the passed text, so that it cannot be read again."""
        self._text, self._at = self._text[self._at :], 0

    def unread(self, text: str) -> None:
        """Puts back the text that was committed last, so that it is read again."""
        self._text = text + self._text

    def rewind(self) -> None:
        """Goes back to the place of the last commit."""
        self._at = 0

    def drop_rest(self) -> None:
        """Drops the rest of an output that was cut: the beginning of a mark, not text."""
        self._at = len(self._text)
        self.commit()

    def more(self) -> Reading[bool]:
        """Waits for more text; returns False if there is none."""
        if not self._is_ended:
            yield
            return True
        return False

    def peek(self) -> Reading[str]:
        """Returns the next character without passing it, or "" at the end."""
        while self._at >= len(self._text):
            if not (yield from self.more()):
                return ""
        return self._text[self._at]

    def passes(self, *options: str) -> Reading[str | None]:
        """Consumes and returns the longest option with which the text continues; None if none."""
        while True:
            rest = self._text[self._at : self._at + max(map(len, options))]
            undecided = [
                option for option in options if len(option) > len(rest) and option.startswith(rest)
            ]
            if undecided and (yield from self.more()):
                continue
            found = max(
                (option for option in options if rest.startswith(option)), key=len, default=None
            )
            self._at += len(found or "")
            return found

    def passes_end(self, *options: str) -> Reading[str | None]:
        """Consumes a mark that must come here, like `passes`.

        If the output was cut, a beginning of the mark is enough.
        """
        found = yield from self.passes(*options)
        rest = self._text[self._at :]
        if found is None and self._is_cut and rest:
            is_begun = any(option.startswith(rest) for option in options)
            if not is_begun:
                return None
            self._at += len(rest)
            return rest
        return found

    def pass_whitespace(self) -> Reading[None]:
        while (char := (yield from self.peek())) and char in WHITESPACE:
            self._at += 1

    def pass_name(self) -> Reading[str]:
        """Consumes the name of a function, or an id, and returns it; "" if there is none."""
        start = self._at
        while (char := (yield from self.peek())).isalnum() or (char and char in _NAME_MARKS):
            self._at += 1
        return self._text[start : self._at]

    def pass_until(self, *markers: str) -> Reading[str | None]:
        """Consumes the text before the first of the markers and returns it; None if there is no
        marker.
        """
        searched = self._at
        while True:
            starts = [
                start for marker in markers if (start := self._text.find(marker, searched)) >= 0
            ]
            if starts:
                passed, self._at = self._text[self._at : min(starts)], min(starts)
                return passed
            searched = max(self._at, len(self._text) - max(map(len, markers)) + 1)
            if not (yield from self.more()):
                return None

    # Passing text on while it arrives

    def give_until(self, give: Give, *markers: str, keeps_cut: bool = True) -> Reading[str | None]:
        """Forwards text to `give` up to the first marker. Returns the marker, or None at the
        end.

        With `keeps_cut`, the beginning of a marker at the end of an output that was cut is text.
        """
        while True:
            found = first_marker(self._text, markers)
            if found is not None:
                start, marker = found
                is_certain = start + len(marker) < len(self._text) or self._is_ended
                if is_certain or not _may_grow(marker, markers):
                    give(self._text[:start])
                    self._at = start + len(marker)
                    self.commit()
                    return marker
                num_safe = start
            else:
                is_all = self._is_ended and (keeps_cut or not self._is_cut)
                num_safe = len(self._text) - (0 if is_all else count_held_back(self._text, markers))
            give(self._text[:num_safe])
            self._text, self._at = self._text[num_safe:], 0
            if not (yield from self.more()):
                return None

    def content_until(self, *markers: str, is_first: bool = False) -> Reading[str | None]:
        """Emits content up to a marker, passes the marker and returns it; None at the end.

        Whitespace alone between two markers belongs to them. With `is_first`, no marker came
        before, so whitespace alone up to the end of the output is content.
        """
        self._blank = ""
        is_blank, self._is_after_text = not self._is_after_text, False

        def give(text: str) -> None:
            nonlocal is_blank
            rest = (self._blank + text).lstrip(WHITESPACE)
            is_between = is_blank and not is_first
            if is_between and self._is_cut and any(marker.startswith(rest) for marker in markers):
                return  # the beginning of the next marker
            is_blank = is_blank and not text.strip(WHITESPACE)
            if is_blank:
                self._blank += text
            else:
                self.content(self._blank + text)
                self._blank = ""

        marker = yield from self.give_until(give, *markers)
        if marker is None and is_first:
            self.content(self._blank)
        return marker

    def keep_as_text(self, marker: str) -> None:
        """Emits the last marker of `content_until` as content, because no valid call followed
        it.
        """
        self.rewind()
        self.content(self._blank + marker)
        self._is_after_text = True

    def read_marked(
        self,
        marks: Sequence[str],
        read_on: Callable[[str], Reading[bool]],
        *,
        is_first: bool = True,
    ) -> Reading[None]:
        """Reads to the end: content, and calls that begin with one of the marks.

        `read_on` gets the mark, reads the call after it and commits. It returns False if there is
        no call; then the mark is text. `is_first` is passed to `content_until`.
        """
        while mark := (yield from self.content_until(*marks, is_first=is_first)):
            is_first = not (yield from read_on(mark))
            if is_first:
                self.keep_as_text(mark)

    def read_sections(
        self,
        begins: Sequence[str],
        call_begin: str,
        end: str,
        read_call: Callable[[], Reading[bool]],
    ) -> Reading[None]:
        """Reads to the end: content, and calls that each begin with `call_begin`, in sections or
        without.

        `read_call` reads the call after its mark and commits. It returns False if there is no call.
        """
        is_first, is_inside = True, False
        while True:
            markers = (*begins, call_begin, end) if is_inside else (*begins, call_begin)
            marker = yield from self.content_until(*markers, is_first=is_first)
            if marker is None:
                return
            if marker == end:
                is_inside = False
                continue
            yield from self.pass_whitespace()
            has_mark = marker == call_begin or (yield from self.passes(call_begin)) is not None
            is_first = not (has_mark and (yield from read_call()))
            if is_first:
                self.keep_as_text(marker)
            is_inside = is_inside or not is_first


def first_marker(text: str, markers: tuple[str, ...]) -> tuple[int, str] | None:
    """Returns the place and the text of the first marker; the longest of several at the same
    place.
    """
    found = [
        (start, -len(marker), marker) for marker in markers if (start := text.find(marker)) >= 0
    ]
    if not found:
        return None
    start, _, marker = min(found)
    return start, marker


def count_held_back(text: str, markers: tuple[str, ...]) -> int:
    """Returns how many characters at the end of `text` may be the beginning of a marker."""
    longest = min(len(text), max(map(len, markers), default=1) - 1)
    for size in range(longest, 0, -1):
        if any(marker.startswith(text[-size:]) for marker in markers):
            return size
    return 0


def _may_grow(marker: str, markers: tuple[str, ...]) -> bool:
    """Tells whether another marker begins with this one."""
    return any(other != marker and other.startswith(marker) for other in markers)
