"""A rendered chat says which control tokens in it are the template's; every other spelling of one is a client's text.

Whatever a template writes goes through its filters and macros beside what clients wrote, so the marks carry it
themselves: brackets with a secret in them stand around each spelling of a control token in the template's own texts
(`template_marks.py`), and around the beginning or end of one, as `<|` and `|>` in `<|{{ role }}|>`. They are taken out
of what was rendered. A client knows no secret and can write no bracket.
"""

import itertools
import secrets
from dataclasses import dataclass

from ouzel.prompts.spellings import Spellings

_SECRET = f"~{secrets.randbits(64):020d}"  # ASCII without letters: no filter of a template changes it
BEGIN, END = f"{_SECRET}(", f"{_SECRET})"
# Such a role is part of the mark between whose beginning and end it stands.
_ROLES = frozenset(
    ("system", "developer", "user", "assistant", "tool", "model", "ipython", "function", "observation", "human")
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
        before, *others = rendered.split(_SECRET)
        pieces, written = [before], list[tuple[int, int]]()
        begin, length = None, len(before)
        for other in others:
            bracket, piece = other[:1], other[1:]
            if bracket == "(":
                begin = length
                # What is written right before it, or before a role's name, is part of the same.
                joins = length - len(before) if before in _ROLES else length
            elif begin is not None:
                if written and written[-1][1] == joins:
                    begin = written.pop()[0]
                written.append((begin, length))
                begin = None
            pieces.append(piece)
            length += len(piece)
            before = piece
        text = "".join(pieces)
        whole = self._control_tokens.texts
        spans = [[span] if text[slice(*span)] in whole else self._control_tokens.spans(text, *span) for span in written]
        return MarkedText(text, tuple(itertools.chain.from_iterable(spans)))


def _bracketed(text: str) -> str:
    return f"{BEGIN}{text}{END}" if text else ""


def bare(text: str) -> str:
    return text.replace(BEGIN, "").replace(END, "") if _SECRET in text else text


def bare_where_found(text: str, wanted: str) -> str:
    """Takes the brackets around a text that is looked for in `text`, so that it is found."""
    return text.replace(f"{BEGIN}{wanted}{END}", wanted) if BEGIN in text else text
