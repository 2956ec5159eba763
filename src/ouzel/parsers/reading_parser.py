"""The parsers of all families are written with this: straight code over a text that comes in pieces.

A parser is a generator that reads on and yields wherever it needs more text. What it has passed but not committed can
be read again, so that a call which turns out to be none is given back as it was written. The deltas, folded together,
cannot depend on the cuts as long as nothing is decided on text that may still go on: the readers here see to that.
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
    """This `Parser` has a generator, `read`; the text from `_at` on is still to be read."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._is_ended = False
        self._is_cut = False  # at the end: more would have come
        self._deltas: list[Delta] = []
        self._num_calls = 0
        self._blank = ""  # the whitespace before the last marker, which belongs to it
        self._is_after_text = False  # the marker turned out to be text
        self._reading = self.read()

    def read(self) -> Reading[None]:
        """Reads the whole output; what it leaves unread at the end comes out as content."""
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

    # What comes out

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
        """Gives the next piece of the last opened call's arguments."""
        if text:
            self._deltas.append(ToolCallDelta(self._num_calls - 1, arguments=text))

    # Looking ahead, and going on or back

    def commit(self) -> None:
        """Drops what has been passed: it will not be read again."""
        self._text, self._at = self._text[self._at :], 0

    def unread(self, text: str) -> None:
        """Puts back the text, passed and committed last, to be read again."""
        self._text = text + self._text

    def rewind(self) -> None:
        """Goes back to where the last commit was."""
        self._at = 0

    def drop_rest(self) -> None:
        """Drops what is left at a cut, which is no text but the beginning of a mark."""
        self._at = len(self._text)
        self.commit()

    def more(self) -> Reading[bool]:
        """Waits for more text; False when there is none."""
        if not self._is_ended:
            yield
            return True
        return False

    def peek(self) -> Reading[str]:
        """Returns the next character, or "" at the end."""
        while self._at >= len(self._text):
            if not (yield from self.more()):
                return ""
        return self._text[self._at]

    def passes(self, *options: str) -> Reading[str | None]:
        """Passes the longest of the options that the text goes on with; None, and nothing passed, when it does not."""
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
        """Does as `passes`, for marks that must come here: where the output was cut the beginning of one will do."""
        found = yield from self.passes(*options)
        rest = self._text[self._at :]
        if (
            found is None
            and self._is_cut
            and rest
            and any(option.startswith(rest) for option in options)
        ):
            self._at += len(rest)
            return rest
        return found

    def pass_whitespace(self) -> Reading[None]:
        while (char := (yield from self.peek())) and char in WHITESPACE:
            self._at += 1

    def pass_name(self) -> Reading[str]:
        """Passes the name of a function, or an id, and returns it; "" when none begins here."""
        start = self._at
        while (char := (yield from self.peek())).isalnum() or (char and char in _NAME_MARKS):
            self._at += 1
        return self._text[start : self._at]

    def pass_until(self, *markers: str) -> Reading[str | None]:
        """Passes the text before the first of the markers and returns it; None, and nothing passed, without one."""
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

    # Giving out text while it comes

    def give_until(self, give: Give, *markers: str, keeps_cut: bool = True) -> Reading[str | None]:
        """Gives the text before the first of the markers, passes that marker and returns it; None at the end.

        With `keeps_cut`, where the text is cut off, what may be the beginning of a marker is text.
        """
        while True:
            found = first_marker(self._text, markers)
            if found is not None:
                start, marker = found
                if (
                    start + len(marker) < len(self._text)
                    or not _may_grow(marker, markers)
                    or self._is_ended
                ):
                    give(self._text[:start])
                    self._at = start + len(marker)
                    self.commit()
                    return marker
                num_safe = start
            else:
                is_all = self._is_ended and (keeps_cut or not self._is_cut)
                num_safe = len(self._text) - (0 if is_all else held_back(self._text, markers))
            give(self._text[:num_safe])
            self._text, self._at = self._text[num_safe:], 0
            if not (yield from self.more()):
                return None

    def content_until(self, *markers: str, is_first: bool = False) -> Reading[str | None]:
        """Gives content up to a marker, which is passed; whitespace alone between two markers belongs to them.

        Where `is_first`, no marker came before, so that whitespace alone up to the end is an answer.
        """
        self._blank = ""
        is_blank, self._is_after_text = not self._is_after_text, False

        def give(text: str) -> None:
            nonlocal is_blank
            rest = (self._blank + text).lstrip(WHITESPACE)
            if (
                is_blank
                and not is_first
                and self._is_cut
                and any(marker.startswith(rest) for marker in markers)
            ):
                return  # the beginning of the next mark
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
        """Gives as content the marker of the last `content_until`: what followed shows that it was none."""
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
        """Reads to the end: content, and what begins with one of the marks.

        `read_on` gets the mark, reads on after it and commits, or returns False: then the mark is text. `is_first` is
        that of `content_until`.
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
        """Reads to the end: content, and sections of calls that each have a mark, or such calls without a section.

        `read_call` reads on after a call's mark and commits, or returns False.
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
    """Returns where the first of the markers starts, and which it is; of several at one place the longest."""
    found = [
        (start, -len(marker), marker) for marker in markers if (start := text.find(marker)) >= 0
    ]
    if not found:
        return None
    start, _, marker = min(found)
    return start, marker


def held_back(text: str, markers: tuple[str, ...]) -> int:
    """Counts the characters at the end that may be the beginning of a marker."""
    longest = min(len(text), max(map(len, markers), default=1) - 1)
    return next(
        (
            size
            for size in range(longest, 0, -1)
            if any(m.startswith(text[-size:]) for m in markers)
        ),
        0,
    )


def _may_grow(marker: str, markers: tuple[str, ...]) -> bool:
    """Whether another marker begins with this one."""
    return any(other != marker and other.startswith(marker) for other in markers)
