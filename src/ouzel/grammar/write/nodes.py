"""Every format is brought to these few forms before `writer` writes it as Lark text."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal is exactly this text, spelled with ordinary tokens."""

    text: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """One of these tokens follows; `ids` is a number, `5`, or has ranges as in `0-3,5-99`."""

    ids: str


@dataclass(frozen=True, slots=True)
class Regular:
    expression: str
    is_open: bool = False  # may go on over a literal that follows: ended by the first one, where something follows
    needs_end: bool = False  # ends only at a literal, a mark or the end of all


@dataclass(frozen=True, slots=True)
class Foreign:
    """A Lark rule expression has lexemes of its own: a JSON schema, a client's grammar, a rule already written."""

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
    """Content runs up to the first of its ends; what follows is no part of the search."""

    content: "Node"
    end: "Node"


Node: TypeAlias = Literal | Tokens | Regular | Foreign | Sequence | Choice | Repeat | Enclosed

NOTHING = Literal("")


def optional(content: Node) -> Node:
    return Repeat(content, 0, 1)


def flattened(node: Node) -> list[Node]:
    """Returns the parts in order, without sequences in sequences and empty texts, and neighbouring literals as one."""
    if isinstance(node, Literal):
        return [node] if node.text else []
    if not isinstance(node, Sequence):
        return [node]
    parts: list[Node] = []
    for part in (inner for outer in node.parts for inner in flattened(outer)):
        if isinstance(part, Literal) and parts and isinstance(last := parts[-1], Literal):
            parts[-1] = Literal(last.text + part.text)
        else:
            parts.append(part)
    return parts
