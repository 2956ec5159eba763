"""Computes the wait of each request in a fair server: strictly first come, first served.

The fair server holds a limited number of models. A request begins when all earlier requests have
begun or left, and its model is loaded; any number of requests may be open at the same time. When
the next request's model is not loaded and no place is free, the least recently used model makes
room: an idle one before one with open requests, whose last request must end first. Loading a model,
with the unload before it, and an open request take as long as they took the real server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request. Times are seconds of one clock."""

    model: str
    arrives_s: float
    open_s: float  # seconds from its first token to its end
    leaves_s: float = inf  # the time when its client leaves, if it has not begun


@dataclass(slots=True)
class _Held:
    """A model in the memory of the fair server."""

    last_begin_s: float
    ends_s: float  # end of its last open request


@dataclass(slots=True)
class _FairServer:
    load_s: Mapping[str, float]
    max_loaded: int
    held: dict[str, _Held] = field(default_factory=dict)
    last_begin_s: float = 0.0

    def take(self, arrival: Arrival) -> float | None:
        """Takes the next request; returns its wait, or None if its client leaves before."""
        begins_s = max(arrival.arrives_s, self.last_begin_s)
        if arrival.leaves_s <= begins_s:
            return None
        if arrival.model not in self.held:
            begins_s = self._load(arrival.model, begins_s)
        model = self.held[arrival.model]
        self.last_begin_s = model.last_begin_s = begins_s
        ends_s = min(begins_s + arrival.open_s, max(arrival.leaves_s, begins_s))
        model.ends_s = max(model.ends_s, ends_s)
        return begins_s - arrival.arrives_s

    def _load(self, name: str, now_s: float) -> float:
        """Loads a model, and returns the time when it is loaded."""
        if len(self.held) >= self.max_loaded:
            victim = min(
                self.held,
                key=lambda each: (self.held[each].ends_s > now_s, self.held[each].last_begin_s),
            )
            now_s = max(now_s, self.held.pop(victim).ends_s)
        loaded_s = now_s + self.load_s[name]
        self.held[name] = _Held(loaded_s, loaded_s)
        return loaded_s


def compute_fair_waits(
    arrivals: Sequence[Arrival], load_s: Mapping[str, float], max_loaded: int
) -> list[float | None]:
    """Returns the wait of each request, in seconds; None: its client leaves before it begins.

    `arrivals` are in the order of time; `load_s` has the seconds to load each model.
    """
    server = _FairServer(load_s, max_loaded)
    return [server.take(arrival) for arrival in arrivals]
