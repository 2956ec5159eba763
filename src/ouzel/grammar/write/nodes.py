"""Defines the intermediate forms of a grammar, which `writer` writes as Lark text."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this text, spelled with ordinary tokens."""

    text: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """One of several tokens; `ids` is a number, `5`, or has ranges as in `0-3,5-99`."""

    ids: str


@dataclass(frozen=True, slots=True)
class Regular:
    """A regular expression, in Lark's notation."""

    expression: str
    # may match beyond a following literal, so it is ended by the first one, if text follows
    is_open: bool = False
    needs_end: bool = False  # ends only at a literal, a mark or the end of the output


@dataclass(frozen=True, slots=True)
class Foreign:
    """A Lark rule with lexemes of its own: a JSON schema, a client's grammar, a written rule."""

    expression: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    content: "Node"
    minimum: int
    maximum: int | None  # None: no limit


@dataclass(frozen=True, slots=True)
class Enclosed:
    """Content up to the first of its ends; the text after it is not searched."""

    content: "Node"
    end: "Node"


Node: TypeAlias = Literal | Tokens | Regular | Foreign | Sequence | Choice | Repeat | Enclosed

NOTHING = Literal("")


def optional(content: Node) -> Node:
    return Repeat(content, 0, 1)


def flatten(node: Node) -> list[Node]:
    """Returns the parts in order, without nested sequences and empty texts, with joined
    literals.
    """
    if isinstance(node, Literal):
        return [node] if node.text else []
    if not isinstance(node, Sequence):
        return [node]
    parts: list[Node] = []
    for part in (inner for outer in node.parts for inner in flatten(outer)):
        if isinstance(part, Literal) and parts and isinstance(last := parts[-1], Literal):
            parts[-1] = Literal(last.text + part.text)
        else:
            parts.append(part)
    return parts
