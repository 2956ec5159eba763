"""A client's own grammar becomes Lark; it may be EBNF as XGrammar and GBNF write it (`root ::= "a" rest*`).

EBNF is about characters, llguidance about lexemes that it cuts greedily. So a grammar without recursion becomes one
lexeme, and in one with recursion every character is a lexeme: both then match exactly what they say.
"""

from collections.abc import Mapping

from ouzel.grammar.ebnf.lark import is_lark, spelled
from ouzel.grammar.ebnf.reader import EbnfReader
from ouzel.grammar.ebnf.rules import ROOT, Options, Part, Reference, Row, Times, check_can_end, is_regular, reachable
from ouzel.grammar.write.nodes import Literal, Node, Regular, Tokens, flattened
from ouzel.grammar.write.spelling import Spelling
from ouzel.grammar.write.writer import quoted, times


def grammar_to_lark(text: str, spelling: Spelling, path: str) -> str:
    """Returns the Lark text. Raises GrammarError."""
    if is_lark(text):
        return spelled(text, spelling, path)
    rules = EbnfReader(text, spelling, path).rules()
    names = reachable(rules, path)
    check_can_end(rules, path)
    return _Writer(rules, names).lark()


class _Writer:
    def __init__(self, rules: Mapping[str, Part], names: list[str]) -> None:
        self._rules = rules
        self._is_lexeme = is_regular(rules)
        letter = "E" if self._is_lexeme else "e"
        self._names = {name: f"{letter}{index}" for index, name in enumerate(names)}

    def lark(self) -> str:
        lines = [f"start: {self._names[ROOT]}"]
        lines += [f"{short}: {self._written(self._rules[name])}" for name, short in self._names.items()]
        return "\n".join(lines) + "\n"

    def _written(self, part: Part) -> str:
        match part:
            case Row(parts):
                return " ".join(map(self._written, parts)) or '""'
            case Options(options):
                return f"({' | '.join(map(self._written, options))})"
            case Times(content, minimum, maximum):
                return f"({self._written(content)}){times(minimum, maximum)}"
            case Reference(name):
                return self._names[name]
            case _:
                return " ".join(map(self._leaf, flattened(part))) or '""'

    def _leaf(self, node: Node) -> str:
        match node:
            case Literal(text):
                return quoted(text) if self._is_lexeme else " ".join(map(quoted, text))
            case Tokens(ids):
                return f"<[{ids}]>"
            case Regular(expression):
                return expression
            case _:
                raise AssertionError(node)  # the reader makes no others
