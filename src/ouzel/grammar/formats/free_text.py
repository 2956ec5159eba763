"""The one argument of a custom tool is a free text; its client may have given a grammar for it, in Lark or as a regex.

The text is written as a JSON string, or bare between marks, so the grammar is read and written anew for that place.
1. Without recursion and `%ignore` it becomes one lexeme, which matches whatever the rules do.
2. Else its terminals stay as the client has cut them. In a JSON string no lexeme can go on over the end of the string.
   Bare text might: there such a grammar is refused. The engine looks one byte ahead to tell where a lexeme ends, which
   an escape is longer than: a terminal that may go on with one escape is not ended by another.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ouzel.grammar.caps import MAX_GRAMMAR_CHARS, check_at_most
from ouzel.grammar.ebnf.lark_reader import START, LarkReader, LarkRules
from ouzel.grammar.ebnf.rules import check_can_end, is_regular, reachable
from ouzel.grammar.ebnf.writer import RuleWriter
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats.members import Members
from ouzel.grammar.formats.parameters import Spell, parameter_around, text_end
from ouzel.grammar.write.json_text import json_characters, json_text
from ouzel.grammar.write.nodes import Literal, Node, Sequence, flattened
from ouzel.grammar.write.regex import line_pattern
from ouzel.grammar.write.writer import GrammarWriter, quoted
from ouzel.types.tools import ParameterMarks

_SYNTAXES = ("lark", "regex")


@dataclass(frozen=True, slots=True)
class _Written:
    """A grammar's rules are written as Lark's."""

    root: str  # its name among them
    lines: list[str]
    is_regular: bool


def json_string(members: Members, writer: GrammarWriter) -> Node:
    """Returns a whole JSON string. Raises GrammarError."""
    written = _written(members, spell=json_characters, spell_text=json_text)
    text = writer.grammar("\n".join([f"start: {written.root}", *written.lines, ""]))
    return Sequence((Literal('"'), text, Literal('"')))


def bare_text(members: Members, writer: GrammarWriter, spell: Spell, marks: ParameterMarks) -> Node:
    """Returns a whole parameter, whose text ends at the first end mark after which its grammar lets it end.

    Raises GrammarError.
    """
    name, path = members.text("name"), members.place("definition")
    written = _written(members, spell=str, spell_text=str)
    if not written.is_regular:
        what = "recursion or %ignore, which cannot be held to where this model writes a text without quotes"
        raise GrammarError(f"{path} has {what}")
    end = flattened(text_end(spell, marks))
    first, rest = (end[0].text, end[1:]) if isinstance(end[0], Literal) else ("", end)
    lazy = "" if rest else "[lazy]"  # a mark is no text: before one the text may be the longest
    lines = [
        f"start: text\ntext{lazy}: TEXT",
        f"TEXT: {written.root} {quoted(first)}",
        *written.lines,
        "",
    ]
    return parameter_around(name, Sequence((writer.grammar("\n".join(lines)), *rest)), spell, marks)


def _written(
    members: Members, *, spell: Callable[[str], str], spell_text: Callable[[str], str]
) -> _Written:
    syntax, definition, path = (
        members.text("syntax"),
        members.text("definition"),
        members.place("definition"),
    )
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
    ignored = {
        f"ignored {place}": part for place, part in enumerate(read.ignored)
    }  # no rule's name has a space
    rules = {**read.rules, **ignored}
    names = dict.fromkeys(
        name for root in (START, *ignored) for name in reachable(rules, path, root)
    )
    check_can_end(rules, path, START)
    regular = not ignored and is_regular(rules, START)
    terminals = names if regular else {name for name in names if name in ignored or name.isupper()}
    writer = RuleWriter(rules, names, terminals=terminals, splits_texts=False)
    lines = [*writer.lines(), *(f"%ignore {writer.names[name]}" for name in ignored)]
    return _Written(writer.names[START], lines, regular)
