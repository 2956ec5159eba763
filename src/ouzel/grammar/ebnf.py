"""A client's own grammar: EBNF as XGrammar and GBNF write it (`root ::= "a" rest*`), or Lark, to Lark.

EBNF is about characters, llguidance about lexemes that it cuts greedily. So a grammar without recursion becomes one
lexeme, and in one with recursion every character is a lexeme: both then match exactly what they say.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ouzel.grammar.caps import MAX_COMBINED_PATTERNS, MAX_LEVELS, MAX_REPEATS, MAX_RULES, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.nodes import Literal, Node, Regular, Sequence, Tokens, flattened
from ouzel.grammar.regex import read_pattern
from ouzel.grammar.text import Spelling
from ouzel.grammar.writer import quoted, times

ROOT = "root"

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
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|u\{([0-9A-Fa-f]{1,6})\}|(.))", re.S)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "f": "\f", "v": "\v", "a": "\a", "b": "\b"}
_TIMES: Mapping[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}

_LARK_START = re.compile(r"^\s*\??start\s*(?:\[[^\]\n]*\])?\s*:(?!:=)", re.M)
_LARK_PIECE = re.compile(
    r"""(?P<kept>"(?:[^"\\\n]|\\.)*"|/(?![/*])(?:[^/\\\n]|\\.)+/|//[^\n]*|\#[^\n]*)|(?P<mark><[^<>\s]+>)""", re.VERBOSE
)


@dataclass(frozen=True, slots=True)
class Reference:
    name: str


Part: TypeAlias = "Node | Reference | Row | Options | Times"


@dataclass(frozen=True, slots=True)
class Row:
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Options:
    options: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Times:
    content: Part
    minimum: int
    maximum: int | None


def grammar_to_lark(text: str, spelling: Spelling, path: str) -> str:
    """Raises GrammarError."""
    if _LARK_START.search(text) and "::=" not in text:
        check_at_most(f"the number of lines of {path}", text.count("\n"), MAX_RULES)
        check_at_most(f"the number of & in {path}", _LARK_PIECE.sub("", text).count("&"), MAX_COMBINED_PATTERNS)
        return _LARK_PIECE.sub(lambda piece: _with_numbers(piece, spelling, path), text)
    rules = _Reader(text, spelling, path).rules()
    reachable = _reachable(rules, path)
    _check_can_end(rules, path)
    return _Writer(rules, reachable).lark()


def _with_numbers(piece: re.Match[str], spelling: Spelling, path: str) -> str:
    """Marks by number: their names are others in the engine's own tokenizer. Open ranges would admit padding."""
    mark = piece["mark"]
    if mark is None:
        return piece[0]
    if mark.startswith("<["):
        if "^" in mark or "*" in mark:
            raise GrammarError(f"{path} has {mark}; name the tokens that may come, as in <[5-9]>")
        return mark
    return f"<[{spelling.token_id(mark, path)}]>"


class _Reader:
    def __init__(self, text: str, spelling: Spelling, path: str) -> None:
        self._spelling = spelling
        self._path = path
        self._tokens = list(self._cut(text))
        self._at = 0
        self._depth = 0

    def rules(self) -> dict[str, Part]:
        found: dict[str, Part] = {}
        while self._at < len(self._tokens):
            name = self._next("name")
            if self._next("sign") != "::=":
                raise self._fault(f"the rule {name!r} must go on with '::='")
            if name in found:
                raise self._fault(f"the rule {name!r} is there twice")
            found[name] = self._options()
            check_at_most(f"the number of rules of {self._path}", len(found), MAX_RULES)
        return found

    def _cut(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match:
                raise self._fault(f"{text[at : at + 10]!r} in line {text.count(chr(10), 0, at) + 1} is not understood")
            if match["look"]:
                raise self._fault("look-ahead is not supported")
            if match["macro"]:
                raise self._fault(f"{match[0]}...) is not supported")
            if not match["space"]:
                assert match.lastgroup
                yield match.lastgroup, match[0]
            at = match.end()

    def _peek(self, offset: int = 0) -> tuple[str, str]:
        at = self._at + offset
        return self._tokens[at] if at < len(self._tokens) else ("end", "")

    def _next(self, kind: str) -> str:
        found, text = self._peek()
        if found != kind:
            raise self._fault(f"{text or 'the end'!r} comes where a {kind} is expected")
        self._at += 1
        return text

    def _options(self) -> Part:
        options = [self._row()]
        while self._peek() == ("sign", "|"):
            self._at += 1
            options.append(self._row())
        return Options(tuple(options)) if len(options) > 1 else options[0]

    def _row(self) -> Part:
        parts: list[Part] = []
        while self._peek()[0] != "end" and self._peek() not in {("sign", "|"), ("sign", ")")} and not self._is_rule():
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
            part = Times(part, *(_TIMES[token[1]] if token[0] == "sign" else self._counts(token[1])))
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
                return self._spelling.literal(self._unescaped(text[1:-1]))
            case "chars":
                return Regular(read_pattern(text, self._path).lark)
            case "mark":
                return Tokens(str(self._spelling.token_id(int(text[2:-2]) if text[1] == "[" else text, self._path)))
        if text == ".":
            return Regular("/(?s:.)/")
        if text != "(":
            raise self._fault(f"{text!r} comes where something to match is expected")
        return self._group()

    def _group(self) -> Part:
        self._depth += 1
        check_at_most(f"the nesting of {self._path}", self._depth, MAX_LEVELS)
        inner = self._options()
        if self._next("sign") != ")":
            raise self._fault("a group has no end")
        self._depth -= 1
        return inner

    def _unescaped(self, text: str) -> str:
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

    def _fault(self, what: str) -> GrammarError:
        return GrammarError(f"{self._path}: {what}")


def _inner(part: Part) -> tuple[Part, ...]:
    match part:
        case Row(parts) | Options(parts):
            return parts
        case Times(content):
            return (content,)
        case _:
            return ()


def _names(part: Part) -> Iterator[str]:
    if isinstance(part, Reference):
        yield part.name
    for inner in _inner(part):
        yield from _names(inner)


def _reachable(rules: Mapping[str, Part], path: str) -> list[str]:
    """Raises GrammarError at a rule that is used but not there."""
    found, pending = dict.fromkeys([ROOT]), [ROOT]
    while pending:
        name = pending.pop()
        if name not in rules:
            raise GrammarError(f"{path}: the rule {name!r} is missing")
        new = [inner for inner in _names(rules[name]) if inner not in found]
        found.update(dict.fromkeys(new))
        pending += dict.fromkeys(new)
    return list(found)


def _grown(rules: Mapping[str, Part], holds: Callable[[Part, set[str]], bool]) -> set[str]:
    """The rules for which `holds` becomes true, given those for which it is true already."""
    users: dict[str, list[str]] = {}
    for user, part in rules.items():
        for name in set(_names(part)):
            users.setdefault(name, []).append(user)
    known: set[str] = set()
    pending = list(rules)
    while pending:
        name = pending.pop()
        if name not in known and holds(rules[name], known):
            known.add(name)
            pending += users.get(name, [])
    return known


def _check_can_end(rules: Mapping[str, Part], path: str) -> None:
    if ROOT not in _grown(rules, _can_end):
        raise GrammarError(f"{path}: the rule {ROOT!r} can never end")


def _can_end(part: Part, known: set[str]) -> bool:
    match part:
        case Reference(name):
            return name in known
        case Options(options):
            return any(_can_end(option, known) for option in options)
        case Times(_, 0, _):
            return True
        case _:
            return all(_can_end(inner, known) for inner in _inner(part))


def _is_regular(part: Part, known: set[str]) -> bool:
    """No recursion and no marks, given the regular rules."""
    match part:
        case Reference(name):
            return name in known
        case Tokens():
            return False
        case Sequence():
            return not any(isinstance(inner, Tokens) for inner in flattened(part))
        case _:
            return all(_is_regular(inner, known) for inner in _inner(part))


class _Writer:
    def __init__(self, rules: Mapping[str, Part], reachable: list[str]) -> None:
        self._rules = rules
        self._is_lexeme = ROOT in _grown(rules, _is_regular)
        letter = "E" if self._is_lexeme else "e"
        self._names = {name: f"{letter}{index}" for index, name in enumerate(reachable)}

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
