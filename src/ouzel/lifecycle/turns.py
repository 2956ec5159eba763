"""Chooses the next load or unload from the groups, the waiting requests and the limits.

Pure functions: the caller has the clock and does the work.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the models in memory together; None: no limit."""

    max_loaded: int | None = None  # models
    max_bytes: int | None = None

    def allow(self, groups: Sequence["GroupView"]) -> bool:
        """Tells whether these groups may be in memory together."""
        num_exclusive = sum(group.is_exclusive for group in groups)
        return (
            num_exclusive <= 1
            and (
                self.max_loaded is None
                or sum(group.num_models for group in groups) <= self.max_loaded
            )
            and (
                self.max_bytes is None or sum(group.num_bytes for group in groups) <= self.max_bytes
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group as the decision sees it."""

    name: str
    num_models: int
    num_bytes: int  # memory of all its models
    is_loaded: bool  # any of its models is in memory
    is_complete: bool  # no model of the group is to be loaded
    is_busy: bool  # a request is open
    is_permanent: bool  # never makes room
    is_exclusive: bool  # no other exclusive group may be in memory beside it
    last_begin_s: float  # the last time when a request began, or the load ended
    expires_s: float | None  # the time when its idle models are unloaded; None: never, or busy


@dataclass(frozen=True, slots=True)
class Step:
    """The decision of a moment."""

    load: str = ""  # the group to load; empty: none
    unload: str = ""  # the group to unload; empty: none
    # groups that take no new requests, because they must make room
    closed: frozenset[str] = frozenset()
    too_large: frozenset[str] = frozenset()  # waiting groups that never fit


def choose_step(
    groups: Mapping[str, GroupView],
    waiting: Sequence[str],
    limits: Limits,
    now_s: float,
    leaving: Set[str] = frozenset(),
) -> Step:
    """Chooses at most one load or unload.

    `waiting` has the names of the groups of the waiting requests, the longest wait first. An
    operator unloads the groups in `leaving`: they end their open requests and take no new ones.
    """
    for name in leaving:
        if groups[name].is_loaded and not groups[name].is_busy:
            return Step(unload=name, closed=frozenset(leaving))
    step = _choose_turn(groups, waiting, limits, now_s)
    return replace(step, closed=step.closed | leaving)


def _choose_turn(
    groups: Mapping[str, GroupView], waiting: Sequence[str], limits: Limits, now_s: float
) -> Step:
    decision = _Decision([group for group in groups.values() if group.is_loaded], limits)
    earlier: set[str] = set()
    for name in dict.fromkeys(waiting):
        decision.consider(groups[name], earlier)
        earlier.add(name)
    load, unload = decision.load, decision.unload
    if not (load or unload):
        unload = _find_expired(decision.in_memory, now_s)
    return Step(load, unload, frozenset(decision.closed), frozenset(decision.too_large))


class _Decision:
    """Looks at one waiting group after the other, the longest wait first."""

    def __init__(self, in_memory: list[GroupView], limits: Limits) -> None:
        self.in_memory = in_memory
        self.load = ""
        self.unload = ""
        self.closed: set[str] = set()
        self.too_large: set[str] = set()
        self._limits = limits
        # groups that are in memory when all groups considered so far are loaded
        self._planned = list(in_memory)

    def consider(self, group: GroupView, earlier: Set[str]) -> None:
        """Makes room for a group. `earlier` are the groups that wait longer, and keep theirs."""
        if group.is_loaded and group.name not in self.closed:
            if not group.is_complete:
                self._move(load=group.name)
            return
        others = [each for each in self._planned if each.name != group.name]
        victims = _choose_victims(group, others, self._limits, kept=earlier)
        if victims is None:
            if not _fits_alone(group, self.in_memory, self._limits):
                self.too_large.add(group.name)
            # an earlier group needs the room: this group waits for its own turn
            return
        self.closed |= {victim.name for victim in victims}
        self._planned = [*(each for each in others if each not in victims), group]
        if group.is_loaded:
            return
        idle = [each for each in victims if not each.is_busy and each in self.in_memory]
        if self._limits.allow([*self.in_memory, group]):
            self._move(load=group.name)
        elif idle:
            self._move(unload=idle[0].name)

    def _move(self, *, load: str = "", unload: str = "") -> None:
        """Sets the next move, unless an earlier group needs another."""
        if not (self.load or self.unload):
            self.load, self.unload = load, unload


def _choose_victims(
    group: GroupView, others: Sequence[GroupView], limits: Limits, *, kept: Set[str]
) -> list[GroupView] | None:
    """Returns the groups that make room for a group; None if no choice makes enough room."""
    if limits.allow([*others, group]):
        return []
    candidates = [each for each in others if not each.is_permanent and each.name not in kept]
    candidates.sort(key=lambda each: (each.is_busy, each.last_begin_s))
    victims: list[GroupView] = []
    for candidate in candidates:
        victims.append(candidate)
        if limits.allow([group, *(each for each in others if each not in victims)]):
            return _without_needless(victims, group, others, limits)
    return None


def _without_needless(
    victims: list[GroupView], group: GroupView, others: Sequence[GroupView], limits: Limits
) -> list[GroupView]:
    """Removes victims whose room is not needed, the most recently used first."""
    needed = list(victims)
    for victim in reversed(victims):
        fewer = [each for each in needed if each is not victim]
        if limits.allow([group, *(each for each in others if each not in fewer)]):
            needed = fewer
    return needed


def _fits_alone(group: GroupView, in_memory: Sequence[GroupView], limits: Limits) -> bool:
    """Tells whether a group fits beside the groups that never make room."""
    permanent = [each for each in in_memory if each.is_permanent and each.name != group.name]
    return limits.allow([group, *permanent])


def _find_expired(in_memory: Sequence[GroupView], now_s: float) -> str:
    """Returns the group whose time without requests is over, the longest ago; "": none."""
    expired = [
        (each.expires_s, each.name)
        for each in in_memory
        if each.expires_s is not None and each.expires_s <= now_s
    ]
    return min(expired)[1] if expired else ""
