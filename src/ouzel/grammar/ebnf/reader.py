"""Parses an EBNF grammar, as XGrammar and GBNF write it, to rules."""

import re
from collections.abc import Iterator, Mapping

from ouzel.grammar.caps import MAX_LEVELS, MAX_REPEATS, MAX_RULES, check_at_most
from ouzel.grammar.ebnf.rule_reader import RuleReader
from ouzel.grammar.ebnf.rules import Part, Reference, Row, Times
from ouzel.grammar.write.nodes import Regular, Tokens
from ouzel.grammar.write.regex import read_pattern
from ouzel.grammar.write.spelling import Spelling

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    | (?P<look>\(=)
    | (?P<macro>(?:TagDispatch|TokenTagDispatch|Token|ExcludeToken|AnyTokens)\s*\()
    | (?P<name>[A-Za-z_][\w.-]*)
    | (?P<text>"(?:[^"\\\n]|\\.)*")
    | (?P<chars>\[(?:[^\]\\]|\\.)+\])
    | (?P<mark><\[\d{1,10}\]>|<[^<>\s\[\]]+>)
    | (?P<times>\{\s*\d{0,10}\s*(?:,\s*\d{0,10}\s*)?\})
    | (?P<sign>::=|[()|*+?.])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|u\{([0-9A-Fa-f]{1,6})\}|(.))", re.S
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "f": "\f", "v": "\v", "a": "\a", "b": "\b"}
_TIMES: Mapping[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class EbnfReader(RuleReader):
    """Parses an EBNF grammar."""

    def __init__(self, text: str, spelling: Spelling, path: str) -> None:
        super().__init__(text, path)
        self._spelling = spelling

    def rules(self) -> dict[str, Part]:
        found: dict[str, Part] = {}
        while self._at < len(self._tokens):
            name = self._next("name")
            if self._next("sign") != "::=":
                raise self._fault(f"the rule {name!r} must continue with '::='")
            if name in found:
                raise self._fault(f"the rule {name!r} is defined twice")
            found[name] = self._options()
            check_at_most(f"the number of rules of {self._path}", len(found), MAX_RULES)
        return found

    def _cut(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match:
                line = text.count("\n", 0, at) + 1
                raise self._fault(f"{text[at : at + 10]!r} in line {line} is not supported")
            if match["look"]:
                raise self._fault("look-ahead is not supported")
            if match["macro"]:
                raise self._fault(f"{match[0]}...) is not supported")
            if not match["space"]:
                assert match.lastgroup
                yield match.lastgroup, match[0]
            at = match.end()

    def _row(self) -> Row:
        parts: list[Part] = []
        while (
            self._peek()[0] != "end"
            and self._peek() not in {("sign", "|"), ("sign", ")")}
            and not self._is_rule()
        ):
            parts.append(self._repeated(self._part()))
        return Row(tuple(parts))

    def _is_rule(self) -> bool:
        return self._peek()[0] == "name" and self._peek(1) == ("sign", "::=")

    def _repeated(self, part: Part) -> Part:
        levels = 0
        while (token := self._peek())[0] == "times" or (token[1] in _TIMES and token[0] == "sign"):
            self._at += 1
            levels += 1
            check_at_most(f"the nesting of {self._path}", levels, MAX_LEVELS)
            part = Times(
                part, *(_TIMES[token[1]] if token[0] == "sign" else self._counts(token[1]))
            )
        return part

    def _counts(self, text: str) -> tuple[int, int | None]:
        low, comma, high = (piece.strip() for piece in text[1:-1].partition(","))
        minimum = int(low or 0)
        maximum = int(high) if high else None if comma else minimum
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
                return self._spelling.literal(self._unescape(text[1:-1]))
            case "chars":
                return Regular(read_pattern(text, self._path).lark)
            case "mark":
                token = int(text[2:-2]) if text[1] == "[" else text
                return Tokens(str(self._spelling.token_id(token, self._path)))
        if text == ".":
            return Regular("/(?s:.)/")
        if text != "(":
            raise self._fault(f"{text!r} stands where a text, a class or a group is expected")
        return self._group()

    def _group(self) -> Part:
        self._depth += 1
        check_at_most(f"the nesting of {self._path}", self._depth, MAX_LEVELS)
        inner = self._options()
        if self._next("sign") != ")":
            raise self._fault("a group has no end")
        self._depth -= 1
        return inner

    def _unescape(self, text: str) -> str:
        return _ESCAPE.sub(self._character, text)

    def _character(self, match: re.Match[str]) -> str:
        *codes, letter = match.groups()
        if letter is None:
            code = int(next(filter(None, codes)), 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self._fault(f"{match[0]} is no character")
            return chr(code)
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum():
            raise self._fault(f"the escape \\{letter} is not supported")
        return letter
