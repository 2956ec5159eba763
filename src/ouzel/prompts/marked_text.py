"""A rendered chat says which control tokens in it are the template's; every other spelling of one is a client's text.

Whatever a template writes goes through its filters and macros beside what clients wrote, so the marks carry it
themselves: brackets with a secret in them stand around each spelling of a control token in the template's own texts
(`template_marks.py`), and around the beginning or end of one, as `<|` and `|>` in `<|{{ role }}|>`. They are taken out
of what was rendered. A client knows no secret and can write no bracket.
"""

import re
import secrets
from dataclasses import dataclass

from ouzel.tokenizer.control_tokens import Spellings

_SECRET = f"{secrets.randbits(64):020d}"  # ASCII without letters: no filter of a template changes it
BEGIN, END = f"~{_SECRET}^", f"^{_SECRET}~"
_BRACKET = re.compile(re.escape(BEGIN) + "|" + re.escape(END))
# A role that stands between the beginning and the end of a mark is part of it.
_ROLE = re.compile(
    re.escape(END)
    + "(system|developer|user|assistant|tool|model|ipython|function|observation|human)"
    + re.escape(BEGIN)
)
_BROKEN = "\ufffd"


@dataclass(frozen=True, slots=True)
class MarkedText:
    text: str
    spans: tuple[tuple[int, int], ...]  # of the template's control tokens: ascending, begin and end

    def cut(self, begin: int, end: int) -> "MarkedText":
        if (begin, end) == (0, len(self.text)):
            return self
        spans = tuple((start - begin, stop - begin) for start, stop in self.spans if begin <= start and stop <= end)
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


class Brackets:
    """Puts brackets into texts and reads them out again."""

    def __init__(self, control_tokens: Spellings) -> None:
        self._control_tokens = control_tokens

    def around_marks(self, text: str) -> str:
        pieces, position = [], 0
        for begin, end in self._control_tokens.spans(text):
            pieces += [text[position:begin], BEGIN, text[begin:end], END]
            position = end
        return "".join([*pieces, text[position:]])

    def around_all(self, text: str) -> str:
        """Brackets the beginnings and ends of marks too, at the text's borders."""
        spans = list(self._control_tokens.spans(text))
        first, last = (spans[0][0], spans[-1][1]) if spans else (len(text), 0)
        num_end = min(self._control_tokens.len_of_ended(text), first)
        num_begin = min(self._control_tokens.len_of_begun(text), len(text) - max(last, num_end))
        middle = self.around_marks(text[num_end : len(text) - num_begin])
        return _bracketed(text[:num_end]) + middle + _bracketed(text[len(text) - num_begin :])

    def read(self, rendered: str) -> MarkedText:
        """A bracket that has lost its counterpart means nothing."""
        if BEGIN not in rendered:
            return MarkedText(bare(rendered), ())
        rendered = _ROLE.sub(r"\1", rendered)
        pieces: list[str] = []
        written: list[tuple[int, int]] = []
        position = length = 0
        begin = None
        for bracket in _BRACKET.finditer(rendered):
            pieces.append(rendered[position : bracket.start()])
            length += bracket.start() - position
            position = bracket.end()
            if bracket[0] == BEGIN:
                begin = length
            elif begin is not None:
                if written and written[-1][1] == begin:
                    begin = written.pop()[0]
                written.append((begin, length))
                begin = None
        text = "".join([*pieces, rendered[position:]])
        return MarkedText(text, tuple(span for piece in written for span in self._control_tokens.spans(text, *piece)))


def _bracketed(text: str) -> str:
    return f"{BEGIN}{text}{END}" if text else ""


def bare(text: str) -> str:
    return _BRACKET.sub("", text) if BEGIN in text or END in text else text


def bare_where_found(text: str, wanted: str) -> str:
    """Takes the brackets around a text that is looked for in `text`, so that it is found."""
    return text.replace(f"{BEGIN}{wanted}{END}", wanted) if BEGIN in text else text
