"""A rendered chat says which control tokens in it are the template's; every other spelling of one is a client's text.

Whatever a template writes goes through its filters and macros beside what clients wrote, so the marks carry it
themselves: each character of a control token in the template's own texts is written as its stand-in, one character of
planes in which Unicode has none (`template_marks.py`); so is the beginning or end of one, as `<|` and `|>` in
`<|{{ role }}|>`. What was rendered is read back. A text has the same length with stand-ins as without, and every part
of it can be read back, so a template may cut it anywhere. What clients write has no stand-ins: they are taken out
before.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ouzel.prompts.spellings import Spellings

_OFFSET, _NUM_CHARACTERS = 0x90000, 0x40000  # Unicode has no characters in planes 4 to 13
_STAND_INS = re.compile(f"[{chr(_OFFSET)}-{chr(_OFFSET + _NUM_CHARACTERS - 1)}]+")
# Such a role is part of the mark between whose beginning and end it stands.
_ROLES = frozenset(
    (
        "system",
        "developer",
        "user",
        "assistant",
        "tool",
        "model",
        "ipython",
        "function",
        "observation",
        "human",
    )
)
_MAX_ROLE_LEN = max(map(len, _ROLES))
_BROKEN = "\ufffd"


@dataclass(frozen=True, slots=True)
class MarkedText:
    text: str
    spans: tuple[tuple[int, int], ...]  # of the template's control tokens: ascending, begin and end

    def cut(self, begin: int, end: int) -> "MarkedText":
        if (begin, end) == (0, len(self.text)):
            return self
        spans = tuple(
            (start - begin, stop - begin)
            for start, stop in self.spans
            if begin <= start and stop <= end
        )
        return MarkedText(self.text[begin:end], spans)

    def without_spelled(self, control_tokens: Spellings) -> str | None:
        """Returns a text of the same length, in which every spelling that is not the template's is broken; None where
        there is no such spelling.
        """
        own = set(self.spans)
        foreign = [span for span in control_tokens.spans(self.text) if span not in own]
        pieces, position = [], 0
        for begin, _ in foreign:
            pieces += [self.text[position:begin], _BROKEN]
            position = begin + 1
        return "".join([*pieces, self.text[position:]]) if foreign else None


class StandIns:
    """Puts stand-ins into texts and reads them back."""

    def __init__(self, control_tokens: Spellings) -> None:
        self._control_tokens = control_tokens

    def of_marks(self, text: str) -> str:
        pieces, position = [], 0
        for begin, end in self._control_tokens.spans(text):
            pieces += [text[position:begin], _stand_ins(text[begin:end])]
            position = end
        return "".join([*pieces, text[position:]])

    def of_parts(self, text: str) -> str:
        """Takes a text that may become the inside of a mark, too."""
        return _stand_ins(text) if self._control_tokens.hold(text) else self.of_all(text)

    def of_all(self, text: str) -> str:
        """Takes the beginnings and ends of marks too, at the text's borders."""
        spans = list(self._control_tokens.spans(text))
        first, last = (spans[0][0], spans[-1][1]) if spans else (len(text), 0)
        num_end = min(self._control_tokens.len_of_ended(text), first)
        num_begin = min(self._control_tokens.len_of_begun(text), len(text) - max(last, num_end))
        middle = self.of_marks(text[num_end : len(text) - num_begin])
        return _stand_ins(text[:num_end]) + middle + _stand_ins(text[len(text) - num_begin :])

    def read(self, rendered: Sequence[str]) -> MarkedText:
        """Takes a text in pieces, of which most have no stand-ins."""
        written, pieces, length = list[tuple[int, int]](), list[str](), 0
        for piece in rendered:
            position = 0
            for found in () if _is_narrow(piece) else _STAND_INS.finditer(piece):
                begin, end = found.span()
                written.append((length + begin, length + end))
                pieces += [piece[position:begin], _read_back(found)]
                position = end
            pieces.append(piece[position:])
            length += len(piece)
        text = "".join(pieces)
        joined = _joined(text, written)
        return MarkedText(
            text, tuple(span for each in joined for span in self._control_tokens.spans(text, *each))
        )


def _joined(text: str, written: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Joins what is written without anything between, or with a role."""
    start, stop = 0, 0
    for begin, end in written:
        if begin != stop and not (begin - stop <= _MAX_ROLE_LEN and text[stop:begin] in _ROLES):
            yield start, stop
            start = begin
        stop = end
    yield start, stop


def _stand_ins(text: str) -> str:
    return "".join(
        chr(ord(each) + _OFFSET) if ord(each) < _NUM_CHARACTERS else each for each in text
    )


def bare(text: str) -> str:
    """Reads stand-ins back."""
    return text if _is_narrow(text) else _STAND_INS.sub(_read_back, text)


def _read_back(found: re.Match[str]) -> str:
    return _characters(found[0])


@lru_cache(maxsize=1024)
def _characters(stand_ins: str) -> str:
    return "".join(chr(ord(each) - _OFFSET) for each in stand_ins)


def has_stand_ins(text: str) -> bool:
    return not _is_narrow(text) and _STAND_INS.search(text) is not None


def without_stand_ins(text: str) -> str:
    """Breaks what would be read back, in a text that is not the template's."""
    return text if _is_narrow(text) else _STAND_INS.sub(lambda found: _BROKEN * len(found[0]), text)


def _is_narrow(text: str) -> bool:
    """Says at once of most texts that they have no stand-ins, which take four bytes, as then does every character."""
    return text.isascii() or sys.getsizeof(text) < 4 * len(text)
