"""Parses protocol buffers in text format without their schema.

A message keeps its fields in order. `[type.googleapis.com / a.B]: {…}` is a field whose name is
stored without blanks. Numbers, enums and booleans are words; adjacent strings are joined.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)
    | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<extension>\[\s*[A-Za-z_][\w./\s-]*\])
    | (?P<word>[A-Za-z_]\w*|[-+]?\.?\d[\w.+-]*|-)
    | (?P<mark>[{}<>:,;\[\]])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    rb"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL
)
_CONTROLS = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}
_ENDS = {"{": "}", "<": ">"}
_MAX_DEPTH = 64


class TextProtoError(ValueError):
    """The message names the fault and its line."""


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str
    is_string: bool
    line: int


@dataclass(frozen=True, slots=True)
class Message:
    fields: tuple[tuple[str, "Scalar | Message"], ...] = ()

    def messages(self, name: str) -> list["Message"]:
        return [
            value for field, value in self.fields if field == name and isinstance(value, Message)
        ]

    def texts(self, name: str) -> list[str]:
        return [
            value.text
            for field, value in self.fields
            if field == name and isinstance(value, Scalar)
        ]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def read_text_proto(text: str) -> Message:
    """Parses a text. Raises TextProtoError."""
    return _Parser(text).message("", depth=0)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text)]
        self._next = 0

    def message(self, end: str, *, depth: int) -> Message:
        if depth > _MAX_DEPTH:
            raise TextProtoError(
                f"line {self._peek().line}: messages are nested more than {_MAX_DEPTH} deep"
            )
        fields: list[tuple[str, Scalar | Message]] = []
        while self._peek().text != end:
            name = self._name()
            fields += [(name, value) for value in self._values(depth)]
            if self._peek().text in (",", ";"):
                self._take()
        self._take()
        return Message(tuple(fields))

    def _name(self) -> str:
        token = self._take()
        if token.kind not in ("word", "extension"):
            raise _unexpected(token, "the name of a field")
        return re.sub(r"[\[\]\s]", "", token.text)

    def _values(self, depth: int) -> Iterator[Scalar | Message]:
        has_colon = self._peek().text == ":"
        if has_colon:
            self._take()
        if self._peek().kind == "extension" or self._peek().text == "[":
            yield from self._list(depth)
        else:
            yield self._value(depth, only_message=not has_colon)

    def _list(self, depth: int) -> Iterator[Scalar | Message]:
        token = self._take()
        if token.kind == "extension":  # a list of words in brackets matches too
            yield from (
                Scalar(word, False, token.line) for word in re.findall(r"[^\s,\[\]]+", token.text)
            )
            return
        while self._peek().text != "]":
            yield self._value(depth, only_message=False)
            if self._peek().text == ",":
                self._take()
        self._take()

    def _value(self, depth: int, *, only_message: bool) -> Scalar | Message:
        token = self._take()
        if token.kind == "mark" and token.text in _ENDS:
            return self.message(_ENDS[token.text], depth=depth + 1)
        if only_message or token.kind not in ("string", "word"):
            raise _unexpected(token, "a message" if only_message else "a value")
        if token.kind == "word":
            if token.text == "-":  # blanks may follow a sign
                return Scalar("-" + self._take().text, False, token.line)
            return Scalar(token.text, False, token.line)
        parts = [_unescaped(token)]
        while self._peek().kind == "string":
            parts.append(_unescaped(self._take()))
        return Scalar("".join(parts), True, token.line)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        if token.kind != "end":  # the end token stays, and its readers report it
            self._next += 1
        return token


def _tokens(text: str) -> Iterator[_Token]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise TextProtoError(
                f"line {line}: {text[position : position + 20].splitlines()[0]!r} cannot be read"
            )
        kind = match.lastgroup or ""
        if kind != "blank":
            yield _Token(kind, match[0], line)
        line += match[0].count("\n")
        position = match.end()
    yield _Token("end", "", line)


def _unexpected(token: _Token, wanted: str) -> TextProtoError:
    found = repr(token.text) if token.kind != "end" else "the end"
    return TextProtoError(f"line {token.line}: {wanted} must stand before {found}")


def _unescaped(token: _Token) -> str:
    raw = _ESCAPE.sub(_escaped_bytes, token.text[1:-1].encode())
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise TextProtoError(f"line {token.line}: {token.text[:100]} is no UTF-8 text") from error


def _escaped_bytes(match: re.Match[bytes]) -> bytes:
    code: bytes = match[1]
    if code[:1] in (b"u", b"U") and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF)).encode(errors="replace")
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code.isdigit() and code[:1] < b"8":
        return bytes([int(code, 8) & 0xFF])
    return _CONTROLS.get(code, code)
