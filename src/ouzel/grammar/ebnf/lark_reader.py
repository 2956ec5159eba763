"""Parses a Lark grammar to rules, for places where its text must be written in another form."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ouzel.grammar.caps import MAX_LEVELS, MAX_REPEATS, MAX_RULES, check_at_most
from ouzel.grammar.ebnf.rule_reader import RuleReader
from ouzel.grammar.ebnf.rules import Part, Reference, Row, Times
from ouzel.grammar.write.nodes import Literal, Regular
from ouzel.grammar.write.regex import escape, line_pattern

START = "start"
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*)
    | (?P<head>[?!]*[A-Za-z_]\w*(?:\.\s*-?\d+)?[ \t]*:(?!:))
    | (?P<import>%import[ \t]+common[ \t]*(?:\.[ \t]*(?P<one>\w+)(?:[ \t]*->[ \t]*(?P<alias>\w+))?
                                                            |\((?P<several>[\w,\s]+)\)))
    | (?P<ignore>%ignore\b)
    | (?P<text>"(?:[^"\\\n]|\\.)*"i?)
    | (?P<regex>/(?![/*])(?:[^/\\\n]|\\.)+/[a-z]*)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<label>->[ \t]*\w+)
    | (?P<times>\{\s*\d{0,10}\s*(?:,\s*\d{0,10}\s*)?\}|~[ \t]*\d{1,10}(?:[ \t]*\.\.[ \t]*\d{1,10})?)
    | (?P<sign>\.\.|[()\[\]|*+?])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x(?P<code>[0-9A-Fa-f]{2})|.)")
_COUNTS = re.compile(r"(\d*)\s*(,|\.\.)?\s*(\d*)")
_TIMES: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_EXPONENT, _DECIMAL = "[eE][+-]?[0-9]+", r"(?:[0-9]+\.[0-9]*|\.[0-9]+)"
_FLOAT = f"(?:[0-9]+{_EXPONENT}|{_DECIMAL}(?:{_EXPONENT})?)"
_COMMON = {  # the terminals of Lark's own library
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[a-fA-F0-9]",
    "INT": "[0-9]+",
    "SIGNED_INT": "[+-]?[0-9]+",
    "DECIMAL": _DECIMAL,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": f"[+-]?{_FLOAT}",
    "NUMBER": f"(?:{_FLOAT}|[0-9]+)",
    "SIGNED_NUMBER": f"[+-]?(?:{_FLOAT}|[0-9]+)",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\.)*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[A-Za-z]",
    "WORD": "[A-Za-z]+",
    "CNAME": "[_A-Za-z][_A-Za-z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"\/\/[^\n]*",
    "SQL_COMMENT": r"--[^\n]*",
}


@dataclass(frozen=True, slots=True)
class LarkRules:
    """The rules of a Lark grammar, and its ignored parts."""

    rules: dict[str, Part]
    ignored: tuple[Part, ...]  # may come between any two terminals


class LarkReader(RuleReader):
    """Parses a Lark grammar."""

    def __init__(
        self, text: str, path: str, *, spell: Callable[[str], str], spell_text: Callable[[str], str]
    ) -> None:
        """Reads the tokens of `text`.

        `spell` rewrites the expression of one character, `spell_text` a whole text.
        """
        self._spell = spell
        self._spell_text = spell_text
        self._found: dict[str, Part] = {}
        self._ignored: list[Part] = []
        super().__init__(text, path)  # reads the tokens, and so the imports

    def read(self) -> LarkRules:
        while (kind := self._peek()[0]) != "end":
            text = self._next(kind)
            match kind:
                case "head":
                    self._add(_name_in(text), self._options())
                case "ignore":
                    self._ignored.append(self._options())
                case _:
                    raise self._fault(f"{text!r} stands where a rule is expected")
        return LarkRules(self._found, tuple(self._ignored))

    def _add(self, name: str, part: Part) -> None:
        if name in self._found:
            raise self._fault(f"the rule {name!r} is defined twice")
        self._found[name] = part
        check_at_most(f"the number of rules of {self._path}", len(self._found), MAX_RULES)

    def _cut(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match:
                line = text.count("\n", 0, at) + 1
                raise self._fault(f"{text[at : at + 10]!r} in line {line} is not supported")
            at = match.end()
            if match["import"]:
                self._import(match)
            elif not match["space"] and not match["label"]:
                assert match.lastgroup
                yield match.lastgroup, match[0]

    def _import(self, match: re.Match[str]) -> None:
        names = (
            [match["one"]]
            if match["one"]
            else [name.strip() for name in match["several"].split(",")]
        )
        for name in names:
            if name not in _COMMON:
                raise self._fault(f"common.{name} is not supported")
            self._add(match["alias"] or name, self._regular(_COMMON[name]))

    def _row(self) -> Row:
        parts: list[Part] = []
        while self._peek()[0] in ("text", "regex", "name") or self._peek()[1] in ("(", "["):
            parts.append(self._repeated(self._part()))
        return Row(tuple(parts))

    def _repeated(self, part: Part) -> Part:
        levels = 0
        while (token := self._peek())[0] == "times" or token[1] in _TIMES:
            self._at += 1
            levels += 1
            check_at_most(f"the nesting of {self._path}", levels, MAX_LEVELS)
            part = Times(
                part, *(_TIMES[token[1]] if token[1] in _TIMES else self._counts(token[1]))
            )
        return part

    def _counts(self, text: str) -> tuple[int, int | None]:
        match = _COUNTS.fullmatch(text.strip("{}~ \t\n"))
        assert match
        minimum = int(match[1] or 0)
        maximum = int(match[3]) if match[3] else None if match[2] else minimum
        for count in (minimum, maximum or 0):
            check_at_most(f"a repetition in {self._path}", count, MAX_REPEATS)
        if maximum is not None and minimum > maximum:
            raise self._fault(f"the repetition {text} ends before it begins")
        return minimum, maximum

    def _part(self) -> Part:
        kind, text = self._peek()
        self._at += 1
        match kind:
            case "name":
                return Reference(text)
            case "text":
                return self._text(text)
            case "regex":
                return self._regex(text)
            case _:
                return self._group(text)

    def _group(self, opening: str) -> Part:
        self._depth += 1
        check_at_most(f"the nesting of {self._path}", self._depth, MAX_LEVELS)
        inner = self._options()
        closing = ")" if opening == "(" else "]"
        if self._peek() != ("sign", closing):
            raise self._fault(
                f"{self._peek()[1] or 'the end'!r} stands where {closing!r} is expected"
            )
        self._at += 1
        self._depth -= 1
        return inner if opening == "(" else Times(inner, 0, 1)

    def _text(self, token: str) -> Part:
        text = self._unescape(token.removesuffix("i"))
        if self._peek() == ("sign", ".."):
            self._at += 1
            end = self._unescape(self._next("text"))
            if len(text) != 1 or len(end) != 1 or text > end:
                raise self._fault(f"the range {text!r}..{end!r} must have single characters")
            return self._regular(f"[{escape(text)}-{escape(end)}]")
        if token.endswith("i"):
            if not text:
                return Literal("")
            return self._regular("".join(_either_case(char) for char in text))
        return Literal(self._spell_text(text))

    def _unescape(self, token: str) -> str:
        try:
            text = str(json.loads(_ESCAPE.sub(_in_json, token)))
            text.encode()
        except ValueError:
            raise self._fault(f"{token[:40]} is not a string") from None
        return text

    def _regex(self, token: str) -> Part:
        _, body, flags = token[0], token[1 : token.rindex("/")], token[token.rindex("/") + 1 :]
        if set(flags) - set("ismu"):
            raise self._fault(f"the flags {flags!r} of a regular expression are not supported")
        return self._regular(body, ignores_case="i" in flags, dot_matches_all="s" in flags)

    def _regular(
        self, pattern: str, *, ignores_case: bool = False, dot_matches_all: bool = False
    ) -> Regular:
        found = line_pattern(
            pattern, self._path, dot_matches_all=dot_matches_all, spell=self._spell
        )
        lark = f"/(?i:{found.lark[1:-1]})/" if ignores_case else found.lark
        return Regular(lark, is_open=found.is_unbounded)


def _in_json(escape: re.Match[str]) -> str:
    return rf"\u00{escape['code']}" if escape["code"] else escape[0]


def _name_in(head: str) -> str:
    match = re.search(r"[A-Za-z_]\w*", head)
    assert match
    return match[0]


def _either_case(char: str) -> str:
    cases = {char, char.lower(), char.upper()}
    return f"[{''.join(escape(case) for case in sorted(cases) if len(case) == 1)}]"
