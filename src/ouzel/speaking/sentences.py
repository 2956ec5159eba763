"""Divides a text into sentences of bounded length.

A sentence ends at `.`, `!`, `?` or `…` before a space, unless the next letter is small or the word
is an abbreviation or an initial; at the marks of Hindi and Chinese; and at a line break. A line
break inside of a sentence, as in mails, counts as a space: no mark before it, a small letter
behind it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARS = 400  # characters of a sentence; longer ones are cut at clauses, then at spaces
_WRAPPED = re.compile(r"(?<=[^\W\d_,;-])[ \t]*\n[ \t]*(?=[^\W\d_])")
# an end of a sentence with closing quotes and brackets, or a mark that needs no space behind it;
# a run of marks is tried once only, from its begin
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]]*(?=\s)|[।॥。！？]+[\"'”’»)\]」』]*")
_LAST_WORD = re.compile(r"[\w.]+$")
_CLAUSE = re.compile(r"[,;:—–][\"'”’»)\]]*(?=\s)|[，、；：]")
_ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof sr sra srta st mt jr rev hon gen col sgt capt lt gov sen rep vs etc e.g i.e
    cf al fig no nr vol pp ed eds inc ltd co corp dept approx est u.s u.k u.n a.m p.m jan feb mar
    apr jun jul aug sep sept oct nov dec m mme mlle sig dott ing avv ej pág núm art
    """.split()  # noqa: SIM905  a list has 80 lines
)


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str  # not blank, at most MAX_CHARS characters
    ends_sentence: bool = True  # otherwise the sentence was cut after this part
    ends_line: bool = False  # a line break follows


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yields the sentences of a text, without blank ones."""
    for line in _join_wrapped_lines(text).split("\n"):
        sentences = [each for each in _split_line(line) if each]
        for index, sentence in enumerate(sentences):
            parts = list(_cut_long(sentence))
            is_last = index == len(sentences) - 1
            yield from (Sentence(part, ends_sentence=False) for part in parts[:-1])
            yield Sentence(parts[-1], ends_line=is_last)


def _join_wrapped_lines(text: str) -> str:
    def join(match: re.Match[str]) -> str:
        return " " if match.string[match.end()].islower() else match.group()

    return _WRAPPED.sub(join, text)


def _split_line(line: str) -> Iterator[str]:
    begin = 0
    for match in _END.finditer(line):
        if _ends_sentence(line, begin, match):
            yield line[begin : match.end()].strip()
            begin = match.end()
    yield line[begin:].strip()


def _ends_sentence(line: str, begin: int, match: re.Match[str]) -> bool:
    rest = line[match.end() : match.end() + 8].lstrip()
    if rest[:1].islower():
        return False
    if match.group() != ".":
        return True
    # a word behind which a full stop is no end; longer words are no abbreviations
    word = _LAST_WORD.search(line, max(begin, match.start() - 8), match.start())
    name = "" if word is None else word.group().lower()
    is_initial = len(name) == 1 and name.isalpha() and name != "i"
    return not is_initial and name not in _ABBREVIATIONS


def _cut_long(sentence: str) -> Iterator[str]:
    """Yields parts of at most MAX_CHARS characters."""
    while len(sentence) > MAX_CHARS:
        clauses = [match.end() for match in _CLAUSE.finditer(sentence, 0, MAX_CHARS)]
        end = clauses[-1] if clauses else sentence.rfind(" ", 1, MAX_CHARS)
        end = end if end > 0 else MAX_CHARS
        if part := sentence[:end].strip():
            yield part
        sentence = sentence[end:].strip()
    yield sentence
