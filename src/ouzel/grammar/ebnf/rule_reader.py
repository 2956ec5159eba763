"""Implements the common base of the grammar parsers: tokens, and rules as options of rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from ouzel.grammar.ebnf.rules import Options, Part, Row
from ouzel.grammar.errors import GrammarError

Token = tuple[str, str]  # kind and text


class RuleReader(ABC):
    """Walks through the tokens of a grammar."""

    def __init__(self, text: str, path: str) -> None:
        """`path` is the grammar's place in the request. Raises GrammarError for unknown tokens."""
        self._path = path
        self._at = 0
        self._depth = 0
        self._tokens = list(self._cut(text))

    @abstractmethod
    def _cut(self, text: str) -> Iterator[Token]: ...

    @abstractmethod
    def _row(self) -> Row: ...

    def _peek(self, offset: int = 0) -> Token:
        at = self._at + offset
        return self._tokens[at] if at < len(self._tokens) else ("end", "")

    def _next(self, kind: str) -> str:
        found, text = self._peek()
        if found != kind:
            raise self._fault(f"{text or 'the end'!r} stands where a {kind} is expected")
        self._at += 1
        return text

    def _options(self) -> Part:
        options: list[Part] = [self._row()]
        while self._peek() == ("sign", "|"):
            self._at += 1
            options.append(self._row())
        return Options(tuple(options)) if len(options) > 1 else options[0]

    def _fault(self, what: str) -> GrammarError:
        return GrammarError(f"{self._path}: {what}")
