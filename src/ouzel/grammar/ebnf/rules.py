"""An EBNF grammar consists of these rules once it is read; what follows from them is computed here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.write.nodes import Node, Sequence, Tokens, flattened

ROOT = "root"


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


def reachable(rules: Mapping[str, Part], path: str, root: str = ROOT) -> list[str]:
    """Returns the rules that the root uses. Raises GrammarError at one that is used but not there."""
    found, pending = dict.fromkeys([root]), [root]
    while pending:
        name = pending.pop()
        if name not in rules:
            raise GrammarError(f"{path}: the rule {name!r} is missing")
        new = [inner for inner in _names(rules[name]) if inner not in found]
        found.update(dict.fromkeys(new))
        pending += dict.fromkeys(new)
    return list(found)


def check_can_end(rules: Mapping[str, Part], path: str, root: str = ROOT) -> None:
    if root not in _grown(rules, _can_end):
        raise GrammarError(f"{path}: the rule {root!r} can never end")


def is_regular(rules: Mapping[str, Part], root: str = ROOT) -> bool:
    """Whether the root does without recursion and marks."""
    return root in _grown(rules, _is_regular)


def _grown(rules: Mapping[str, Part], holds: Callable[[Part, set[str]], bool]) -> set[str]:
    """Returns the rules for which `holds` is true, which it decides by the rules for which it is true already."""
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


def _is_regular(part: Part, known: set[str]) -> bool:
    """Whether a part has no recursion and no marks, where `known` are the regular rules."""
    match part:
        case Reference(name):
            return name in known
        case Tokens():
            return False
        case Sequence():
            return not any(isinstance(inner, Tokens) for inner in flattened(part))
        case _:
            return all(_is_regular(inner, known) for inner in _inner(part))


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


def _names(part: Part) -> Iterator[str]:
    if isinstance(part, Reference):
        yield part.name
    for inner in _inner(part):
        yield from _names(inner)


def _inner(part: Part) -> tuple[Part, ...]:
    match part:
        case Row(parts) | Options(parts):
            return parts
        case Times(content):
            return (content,)
        case _:
            return ()
