"""Writes a client's own grammar as Lark; it may be EBNF as XGrammar and GBNF write it (`root ::=
"a" rest*`).

EBNF describes characters, llguidance lexemes that it cuts greedily. So a grammar without recursion
becomes one lexeme, and in a grammar with recursion every character is a lexeme: both then match
exactly the same texts.
"""

from collections.abc import Collection, Iterable, Mapping

from ouzel.grammar.ebnf.lark import is_lark, spell_marks
from ouzel.grammar.ebnf.reader import EbnfReader
from ouzel.grammar.ebnf.rules import (
    ROOT,
    Options,
    Part,
    Reference,
    Row,
    Times,
    check_can_end,
    find_reachable,
    is_regular,
)
from ouzel.grammar.write.nodes import Literal, Node, Regular, Tokens, flatten
from ouzel.grammar.write.spelling import Spelling
from ouzel.grammar.write.writer import quote, times


def grammar_to_lark(text: str, spelling: Spelling, path: str) -> str:
    """Returns the Lark text of a grammar. Raises GrammarError."""
    if is_lark(text):
        return spell_marks(text, spelling, path)
    rules = EbnfReader(text, spelling, path).rules()
    names = find_reachable(rules, path)
    check_can_end(rules, path)
    is_lexeme = is_regular(rules)
    writer = RuleWriter(
        rules, names, terminals=names if is_lexeme else (), splits_texts=not is_lexeme
    )
    return "\n".join([f"start: {writer.names[ROOT]}", *writer.lines()]) + "\n"


class RuleWriter:
    """Writes the rules in `names` as Lark; `self.names` has their new names."""

    def __init__(
        self,
        rules: Mapping[str, Part],
        names: Iterable[str],
        *,
        terminals: Collection[str],
        splits_texts: bool,
    ) -> None:
        self._rules = rules
        self._splits_texts = splits_texts
        self.names = {
            name: f"{'E' if name in terminals else 'e'}{index}" for index, name in enumerate(names)
        }

    def lines(self) -> list[str]:
        return [f"{short}: {self._write(self._rules[name])}" for name, short in self.names.items()]

    def _write(self, part: Part) -> str:
        match part:
            case Row(parts):
                return " ".join(map(self._write, parts)) or '""'
            case Options(options):
                return f"({' | '.join(map(self._write, options))})"
            case Times(content, minimum, maximum):
                return f"({self._write(content)}){times(minimum, maximum)}"
            case Reference(name):
                return self.names[name]
            case _:
                return " ".join(map(self._leaf, flatten(part))) or '""'

    def _leaf(self, node: Node) -> str:
        match node:
            case Literal(text):
                return " ".join(map(quote, text)) if self._splits_texts else quote(text)
            case Tokens(ids):
                return f"<[{ids}]>"
            case Regular(expression):
                return expression
            case _:
                raise AssertionError(node)  # the parser makes no other nodes
