"""Writes nodes as Lark text for llguidance.

The lexer takes the longest match among the lexemes that may come now, and never goes back. Its
errors are always too strict, never too loose; these rules prevent them:

1. Neighbouring regular parts become one lexeme (one terminal), so nothing must be cut within them.
2. A part that could continue over its own end is one lexeme with that end, and stops at the first
   one (`[lazy]`).
3. Before a choice such a part is moved into each option, to meet the option's first literal. Text
   that meets neither a literal, a mark nor the end of the output cannot be written, and is refused.
4. Of two options neither may begin with the whole first literal of the other.
"""

import json
from itertools import pairwise

from ouzel.grammar.caps import MAX_EXPRESSIONS, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.write.nodes import (
    Choice,
    Enclosed,
    Foreign,
    Literal,
    Node,
    Regular,
    Repeat,
    Sequence,
    Tokens,
    flatten,
)

NO_END = "unlimited text must come last or be followed by a literal"


class GrammarWriter:
    """Collects one grammar text: a start rule, its parts, and the client's own grammars beside
    it.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # names by definition
        self._grammars: list[str] = []
        self._num_expressions = 0

    def terminal(self, expression: str) -> str:
        return self._defined("T{}", expression)

    def lazy(self, expression: str) -> str:
        """Adds a rule that ends where the expression first matches; returns its name."""
        return self._defined("u{}[lazy]", self.terminal(expression))

    def rule(self, expression: str) -> str:
        return self._defined("r{}", expression)

    def grammar(self, lark: str) -> Foreign:
        """Adds a whole grammar with names of its own."""
        self._grammars.append(lark)
        return Foreign(f"@g{len(self._grammars)}")

    def finish(self, node: Node) -> str:
        """Returns the grammar text. Raises GrammarError."""
        lines = [f"start: {self.expression(node)}"]
        lines += [f"{name}: {definition}" for definition, name in self._names.items()]
        top = "\n".join(lines) + "\n"
        if not self._grammars:
            return top
        others = [
            {"name": f"g{place + 1}", "lark_grammar": text}
            for place, text in enumerate(self._grammars)
        ]
        return json.dumps({"grammars": [{"name": "top", "lark_grammar": top}, *others]})

    def expression(self, node: Node, *, is_last: bool = True) -> str:
        """Writes a node as a rule expression.

        With `is_last`, nothing follows it. Raises GrammarError.
        """
        self._num_expressions += 1  # rule 3 multiplies
        check_at_most(
            "the number of parts of the grammar, written out,",
            self._num_expressions,
            MAX_EXPRESSIONS,
        )
        parts = flatten(node)
        written: list[str] = []
        while parts:
            run = _regular_run(parts)
            rest = parts[len(run) or 1 :]
            if run and rest and isinstance(options := rest[0], Choice) and not _has_ended(run):
                parts = [
                    Choice(tuple(Sequence((*run, option)) for option in options.options)),
                    *rest[1:],
                ]
            elif run:
                written.append(self._run(run, rest, is_last=is_last))
                parts = rest
            elif rest and _ends_in_text(parts[0]):
                parts = [_moved_in(parts[0], rest[0]), *rest[1:]]
            else:
                written.append(self._part(parts[0], is_last=is_last and not rest))
                parts = rest
        return " ".join(written) or '""'

    def _run(self, run: list[Node], rest: list[Node], *, is_last: bool) -> str:
        """Writes regular neighbours as one lexeme."""
        if len(run) == 1 and isinstance(run[0], Literal):
            return quote(run[0].text)
        regular = _sequence_as_regular([_as_regular(part) for part in run])
        is_end = not rest and is_last
        if regular.needs_end and not is_end and not (rest and isinstance(rest[0], Tokens)):
            raise GrammarError(NO_END)
        if regular.is_open and not is_end and _has_ended(run):
            return self.lazy(regular.expression)
        return self.terminal(regular.expression)

    def _part(self, node: Node, *, is_last: bool) -> str:
        match node:
            case Tokens():
                return f"<[{node.ids}]>"
            case Foreign():
                return node.expression
            case Choice():
                _check_first_literals(node)
                options = [self.expression(option, is_last=is_last) for option in node.options]
                return f"({' | '.join(options)})"
            case Repeat():
                content = self.expression(node.content, is_last=is_last and node.maximum == 1)
                return f"({content}){times(node.minimum, node.maximum)}"
            case Enclosed():
                return f"({self.expression(Sequence((node.content, node.end)), is_last=False)})"
            case _:
                raise AssertionError(node)  # regular nodes are in runs, sequences are flattened

    def _defined(self, name: str, definition: str) -> str:
        if definition not in self._names:
            self._names[definition] = name.format(len(self._names) + 1)
        return self._names[definition].removesuffix("[lazy]")


def quote(text: str) -> str:
    """Returns a Lark string; its escapes are JSON's."""
    return json.dumps(text)


def _is_regular(node: Node) -> bool:
    match node:
        case Literal() | Regular():
            return True
        case Sequence():
            return all(map(_is_regular, node.parts))
        case Choice():
            return all(map(_is_regular, node.options))
        case Repeat():
            return _is_regular(node.content)
        case _:
            return False


def _regular_run(parts: list[Node]) -> list[Node]:
    count = 0
    while count < len(parts) and _is_regular(parts[count]):
        count += 1
    return parts[:count]


def _as_regular(node: Node) -> Regular:
    match node:
        case Literal():
            return Regular(quote(node.text))
        case Regular():
            return node
        case Sequence():
            return _sequence_as_regular([_as_regular(part) for part in flatten(node)])
        case Choice():
            options = [_as_regular(option) for option in node.options]
            return Regular(
                f"({' | '.join(option.expression for option in options)})",
                any(option.is_open for option in options),
                any(option.needs_end for option in options),
            )
        case Repeat():
            content = _as_regular(node.content)
            is_open = content.is_open or node.maximum is None
            return Regular(
                f"({content.expression}){times(node.minimum, node.maximum)}",
                is_open,
                content.needs_end,
            )
        case _:
            raise AssertionError(node)


def _sequence_as_regular(parts: list[Regular]) -> Regular:
    if not parts:
        return Regular('""')
    return Regular(
        " ".join(part.expression for part in parts),
        any(part.is_open for part in parts),
        parts[-1].needs_end,
    )


def _has_ended(run: list[Node]) -> bool:
    """Tells whether the last part is a literal or a choice of literals."""
    last = run[-1]
    return isinstance(last, Literal) or (
        isinstance(last, Choice)
        and all(isinstance(option, Literal) and option.text for option in last.options)
    )


def _ends_in_text(node: Node) -> bool:
    match node:
        case Regular():
            return node.needs_end
        case Sequence():
            parts = flatten(node)
            return bool(parts) and _ends_in_text(parts[-1])
        case Choice():
            return any(map(_ends_in_text, node.options))
        case Repeat():
            return _ends_in_text(node.content)
        case _:
            return False


def _moved_in(node: Node, following: Node) -> Node:
    match node:
        case Choice():
            return Choice(tuple(Sequence((option, following)) for option in node.options))
        case Repeat(content, 0, 1):
            return Choice((Sequence((content, following)), following))
        case _:
            raise GrammarError(NO_END)


def _check_first_literals(choice: Choice) -> None:
    """Checks rule 4; in sorted order, a prefix is next to a text that it begins."""
    firsts = sorted({_first_literal(option) for option in choice.options} - {""})
    for short, long in pairwise(firsts):
        if long.startswith(short):
            raise GrammarError(
                f"of two options that may come at one place, {short!r} begins {long!r}"
            )


def _first_literal(node: Node) -> str:
    match flatten(node):
        case [Literal(text), *_]:
            return text
        case _:
            return ""


def times(minimum: int, maximum: int | None) -> str:
    match (minimum, maximum):
        case (0, 1):
            return "?"
        case (0, None):
            return "*"
        case (1, None):
            return "+"
        case (_, None):
            return f"{{{minimum},}}"
        case _:
            return f"{{{minimum},{maximum}}}"
