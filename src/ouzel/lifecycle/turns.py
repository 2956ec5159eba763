"""Chooses the next load or unload from the groups, the waiting requests and the limits.

Pure functions: the caller has the clock and does the work.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
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
    num_bytes: int  # of memory, of all its models
    is_loaded: bool  # any of its models is in memory
    is_complete: bool  # no model of the group is to be loaded
    is_busy: bool  # a request is open
    is_permanent: bool  # never makes room
    is_exclusive: bool  # at most one exclusive group is in memory
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
    in_memory = [group for group in groups.values() if group.is_loaded]
    # groups that stay in memory when all earlier waiting groups are loaded
    planned = list(in_memory)
    closed: set[str] = set()
    too_large: set[str] = set()
    step = Step()
    for name in dict.fromkeys(waiting):
        group = groups[name]
        if group.is_loaded and name not in closed:
            if not (group.is_complete or step.load or step.unload):
                step = Step(load=name)
            continue
        others = [each for each in planned if each.name != name]
        victims = _choose_victims(group, others, limits, kept=set(waiting_before(name, waiting)))
        if victims is None:
            if not _fits_alone(group, in_memory, limits):
                too_large.add(name)
            # an earlier group needs the room: this group waits for its own turn
            continue
        closed |= {victim.name for victim in victims}
        planned = [each for each in others if each not in victims] + [group]
        if step.load or step.unload or group.is_loaded:
            continue
        if limits.allow([*in_memory, group]):
            step = Step(load=name)
        elif idle := [each for each in victims if not each.is_busy and each in in_memory]:
            step = Step(unload=idle[0].name)
    if not (step.load or step.unload):
        step = Step(unload=_find_expired(in_memory, now_s))
    return Step(step.load, step.unload, frozenset(closed), frozenset(too_large))


def waiting_before(name: str, waiting: Sequence[str]) -> Iterator[str]:
    """Yields the groups that wait longer than the group `name`."""
    for each in waiting:
        if each == name:
            return
        yield each


def _choose_victims(
    group: GroupView, others: Sequence[GroupView], limits: Limits, *, kept: set[str]
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
