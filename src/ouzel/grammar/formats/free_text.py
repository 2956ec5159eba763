"""Writes the grammar of a custom tool's one argument, a free text, with the client's grammar for
it.

The client's grammar is in Lark or a regular expression. A model writes the text as a JSON string,
or bare between marks, so the grammar is read and rewritten for that place.

1. Without recursion and `%ignore` it becomes one lexeme, which matches exactly the same texts as
   the rules.
2. Otherwise its terminals stay as the client wrote them. In a JSON string no lexeme can continue
   after the end of the string. In bare text it might: such a grammar is refused there. The engine
   looks one byte ahead to find the end of a lexeme, but an escape is longer: a terminal that may
   continue with one escape is not ended by another.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ouzel.grammar.caps import MAX_GRAMMAR_CHARS, check_at_most
from ouzel.grammar.ebnf.lark_reader import START, LarkReader, LarkRules
from ouzel.grammar.ebnf.rules import check_can_end, find_reachable, is_regular
from ouzel.grammar.ebnf.writer import RuleWriter
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats.members import Members
from ouzel.grammar.formats.parameters import Spell, parameter_around, text_end
from ouzel.grammar.write.json_text import json_characters, json_text
from ouzel.grammar.write.nodes import Literal, Node, Sequence, flatten
from ouzel.grammar.write.regex import line_pattern
from ouzel.grammar.write.writer import GrammarWriter, quote
from ouzel.types.tools import ParameterMarks

_SYNTAXES = ("lark", "regex")


@dataclass(frozen=True, slots=True)
class _Written:
    """The rules of a grammar, written as Lark."""

    root: str  # name of the root rule
    lines: list[str]
    is_regular: bool


def json_string(members: Members, writer: GrammarWriter) -> Node:
    """Writes a whole JSON string. Raises GrammarError."""
    written = _write(members, spell=json_characters, spell_text=json_text)
    text = writer.grammar("\n".join([f"start: {written.root}", *written.lines, ""]))
    return Sequence((Literal('"'), text, Literal('"')))


def bare_text(members: Members, writer: GrammarWriter, spell: Spell, marks: ParameterMarks) -> Node:
    """Writes a whole parameter. Its text ends at the first end mark after which its grammar lets it
    end.

    Raises GrammarError.
    """
    name, path = members.text("name"), members.place("definition")
    written = _write(members, spell=str, spell_text=str)
    if not written.is_regular:
        raise GrammarError(
            f"{path} has recursion or %ignore, which is not supported for this model, "
            f"because it writes the text without quotes"
        )
    end = flatten(text_end(spell, marks))
    first, rest = (end[0].text, end[1:]) if isinstance(end[0], Literal) else ("", end)
    lazy = "" if rest else "[lazy]"  # a mark is no text: before a mark the text may be the longest
    lines = [
        f"start: text\ntext{lazy}: TEXT",
        f"TEXT: {written.root} {quote(first)}",
        *written.lines,
        "",
    ]
    return parameter_around(name, Sequence((writer.grammar("\n".join(lines)), *rest)), spell, marks)


def _write(
    members: Members, *, spell: Callable[[str], str], spell_text: Callable[[str], str]
) -> _Written:
    syntax, definition = members.text("syntax"), members.text("definition")
    path = members.place("definition")
    check_at_most(f"the number of characters of {path}", len(definition), MAX_GRAMMAR_CHARS)
    match syntax:
        case "lark":
            return _of_lark(
                LarkReader(definition, path, spell=spell, spell_text=spell_text).read(), path
            )
        case "regex":
            return _Written(
                "E0", [f"E0: {line_pattern(definition, path, spell=spell).lark}"], is_regular=True
            )
        case _:
            raise GrammarError(
                f"{members.place('syntax')} must be one of {', '.join(_SYNTAXES)}, given {syntax!r}"
            )


def _of_lark(read: LarkRules, path: str) -> _Written:
    # no rule's name has a space
    ignored = {f"ignored {place}": part for place, part in enumerate(read.ignored)}
    rules = {**read.rules, **ignored}
    names = dict.fromkeys(
        name for root in (START, *ignored) for name in find_reachable(rules, path, root)
    )
    check_can_end(rules, path, START)
    regular = not ignored and is_regular(rules, START)
    terminals = names if regular else {name for name in names if name in ignored or name.isupper()}
    writer = RuleWriter(rules, names, terminals=terminals, splits_texts=False)
    lines = [*writer.lines(), *(f"%ignore {writer.names[name]}" for name in ignored)]
    return _Written(writer.names[START], lines, regular)
