"""A rendered chat that distinguishes the template's control tokens from a client's spellings.

Template code passes all text through filters and macros, so the marking must survive them:

- Each character of a control token in the template's source is replaced by a stand-in: one
  character from the Unicode planes that are unassigned (`template_marks.py`). The beginning or end
  of a control token is replaced too, as `<|` and `|>` in `<|{{ role }}|>`.
- After the rendering the stand-ins are read back. Their places are the spans of `MarkedText`.
- A text has the same length with stand-ins as without, and every part can be read back, so a
  template may cut it anywhere.
- Stand-ins in a client's text are replaced before the rendering.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ouzel.prompts.spellings import Spellings

_OFFSET, _NUM_CHARACTERS = 0x90000, 0x40000  # Unicode has no characters in planes 4 to 13
_STAND_INS = re.compile(f"[{chr(_OFFSET)}-{chr(_OFFSET + _NUM_CHARACTERS - 1)}]+")
# A role between the beginning and the end of a control token belongs to the token.
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
    # (begin, end) of each control token that the template wrote, ascending
    spans: tuple[tuple[int, int], ...]

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
        """Returns a text of the same length with all control tokens broken that the template did
        not write, or None if there are none.
        """
        own = set(self.spans)
        foreign = [span for span in control_tokens.spans(self.text) if span not in own]
        pieces, position = [], 0
        for begin, _ in foreign:
            pieces += [self.text[position:begin], _BROKEN]
            position = begin + 1
        return "".join([*pieces, self.text[position:]]) if foreign else None


class StandIns:
    """Writes stand-ins for control tokens into texts and reads them back."""

    def __init__(self, control_tokens: Spellings) -> None:
        self._control_tokens = control_tokens

    def write_tokens(self, text: str) -> str:
        """Replaces each control token in `text`."""
        pieces, position = [], 0
        for begin, end in self._control_tokens.spans(text):
            pieces += [text[position:begin], _stand_ins(text[begin:end])]
            position = end
        return "".join([*pieces, text[position:]])

    def write_parts(self, text: str) -> str:
        """Replaces the whole `text` if it is part of a control token, else as `write_all` does."""
        return _stand_ins(text) if self._control_tokens.hold(text) else self.write_all(text)

    def write_all(self, text: str) -> str:
        """Replaces each control token, and parts of control tokens at both ends of `text`."""
        spans = list(self._control_tokens.spans(text))
        first, last = (spans[0][0], spans[-1][1]) if spans else (len(text), 0)
        num_end = min(self._control_tokens.len_of_ended(text), first)
        num_begin = min(self._control_tokens.len_of_begun(text), len(text) - max(last, num_end))
        middle = self.write_tokens(text[num_end : len(text) - num_begin])
        return _stand_ins(text[:num_end]) + middle + _stand_ins(text[len(text) - num_begin :])

    def read(self, rendered: Sequence[str]) -> MarkedText:
        """Reads back a rendered text, given in pieces; most pieces have no stand-ins."""
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
        spans = [
            span
            for each in _joined(text, written)
            for span in self._control_tokens.spans(text, *each)
        ]
        return MarkedText(text, tuple(spans))


def _joined(text: str, written: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Joins spans of stand-ins that touch each other or that have only a role between them."""
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
    """Returns the text with its stand-ins read back."""
    return text if _is_narrow(text) else _STAND_INS.sub(_read_back, text)


def _read_back(found: re.Match[str]) -> str:
    return _characters(found[0])


@lru_cache(maxsize=1024)
def _characters(stand_ins: str) -> str:
    return "".join(chr(ord(each) - _OFFSET) for each in stand_ins)


def has_stand_ins(text: str) -> bool:
    return not _is_narrow(text) and _STAND_INS.search(text) is not None


def without_stand_ins(text: str) -> str:
    """Replaces stand-ins in a client's text by U+FFFD."""
    return text if _is_narrow(text) else _STAND_INS.sub(lambda found: _BROKEN * len(found[0]), text)


def _is_narrow(text: str) -> bool:
    """Tells quickly for most texts that they have no stand-ins.

    A stand-in takes four bytes, and then CPython stores every character of the text in four.
    """
    return text.isascii() or sys.getsizeof(text) < 4 * len(text)
