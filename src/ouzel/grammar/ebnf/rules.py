"""Defines the rules of a parsed grammar, and computes their properties."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ouzel.grammar.caps import MAX_LEVELS, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.write.nodes import Node, Sequence, Tokens, flatten

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


def find_reachable(rules: Mapping[str, Part], path: str, root: str = ROOT) -> list[str]:
    """Returns the rules that the root uses. Raises GrammarError for missing or too deep rules."""
    for part in rules.values():
        _check_levels(part, path)
    found, pending = dict.fromkeys([root]), [root]
    while pending:
        name = pending.pop()
        if name not in rules:
            raise GrammarError(f"{path}: the rule {name!r} is missing")
        new = [inner for inner in _names(rules[name]) if inner not in found]
        found.update(dict.fromkeys(new))
        pending += dict.fromkeys(new)
    return list(found)


def _check_levels(part: Part, path: str) -> None:
    """Checks the nesting, before any recursive function reads a part.

    A group has up to three levels: options, rows, repetitions.
    """
    levels, row = 0, [part]
    while row := [inner for outer in row for inner in _inner(outer)]:
        levels += 1
        check_at_most(
            f"the nesting of groups and repetitions of {path}", levels, 3 * (MAX_LEVELS + 1)
        )


def check_can_end(rules: Mapping[str, Part], path: str, root: str = ROOT) -> None:
    if root not in find_holding(rules, _needs_to_end):
        raise GrammarError(f"{path}: the rule {root!r} can never end")


def is_regular(rules: Mapping[str, Part], root: str = ROOT) -> bool:
    """Tells whether the root has no recursion and no marks."""
    return root in find_holding(rules, _needs_to_be_regular)


def find_holding(rules: Mapping[str, Part], num_needed: Callable[[Part], int | None]) -> set[str]:
    """Returns the rules that have a property, computed from their parts.

    A part has it if `num_needed(part)` of its inner parts have it; None: never. Every part is
    visited once, however the rules use each other.
    """
    missing: list[int | None] = []  # number of inner parts still missing, by part
    users: list[int | str] = []  # the part or rule that contains it
    references: dict[str, list[int]] = {}  # parts that name a rule, by rule
    pending: list[tuple[Part, int | str]] = [(part, name) for name, part in rules.items()]
    while pending:
        part, user = pending.pop()
        if isinstance(part, Reference):
            references.setdefault(part.name, []).append(len(missing))
        pending += [(inner, len(missing)) for inner in _inner(part)]
        missing.append(num_needed(part))
        users.append(user)
    find_holding: set[str] = set()
    new = [user for user, count in zip(users, missing, strict=True) if count == 0]
    while new:
        user = new.pop()
        if isinstance(user, str):
            find_holding.add(user)
        for place in references.get(user, []) if isinstance(user, str) else [user]:
            count = missing[place]
            if count is not None:
                missing[place] = count - 1
                new += [users[place]] if count == 1 else []
    return find_holding


def _needs_to_end(part: Part) -> int | None:
    match part:
        case Reference() | Options():
            return 1
        case Times(_, 0, _):
            return 0
        case _:
            return len(_inner(part))


def _needs_to_be_regular(part: Part) -> int | None:
    match part:
        case Reference():
            return 1
        case Tokens():
            return None
        case Sequence() if any(isinstance(inner, Tokens) for inner in flatten(part)):
            return None
        case _:
            return len(_inner(part))


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
