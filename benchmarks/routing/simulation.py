"""Simulates by discrete events: sessions arrive, turns go to replicas, tokens come, answers end."""

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from benchmarks.routing.policies import make_router
from benchmarks.routing.prompts import CachedText, Turn
from benchmarks.routing.replica import TOKENS_PER_S, Replica
from benchmarks.routing.sessions import WORKLOADS, arrivals
from benchmarks.routing.traces import generate_trace, replay
from ouzel.routing import Weights

_WARMING = 0.25  # share of the requests that is not counted
_TRACE_TOKENS = 1200  # uncached tokens of a request of a generated trace, about


class AnySession(Protocol):
    def next_turn(self) -> Turn: ...

    def answered(self) -> CachedText: ...

    def think_s(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    hit_rate: float
    first_token_p50_s: float
    first_token_p99_s: float
    largest_share: float  # share of the requests, times the number of replicas

    @classmethod
    def of(cls, waits_s: list[float], num_hits: int, num_tokens: int, sent: list[int]) -> "Outcome":
        waits_s = sorted(waits_s)
        return cls(
            num_hits / num_tokens,
            waits_s[len(waits_s) // 2],
            waits_s[int(0.99 * (len(waits_s) - 1))],
            max(sent) * len(sent) / sum(sent),
        )


@dataclass(frozen=True, slots=True)
class Experiment:
    workload: str
    num_replicas: int
    num_requests: int
    load: float
    seed: int

    def sessions(self) -> Iterator[tuple[float, AnySession]]:
        rate = self.load * self.num_replicas * TOKENS_PER_S
        if self.workload in WORKLOADS:
            return arrivals(WORKLOADS[self.workload], uncached_tokens_per_s=rate, seed=self.seed)
        trace = generate_trace(
            seed=self.seed, num_requests=self.num_requests + 1, requests_per_s=rate / _TRACE_TOKENS
        )
        return replay(trace)


def simulate(
    policy: str,
    experiment: Experiment,
    *,
    weights: Weights = Weights(),  # noqa: B008  # frozen
    sessions: Iterator[tuple[float, AnySession]] | None = None,
) -> Outcome:
    """Runs an experiment with a policy; an experiment has the same sessions for all policies."""
    run = _Run(policy, experiment, weights)
    return run.outcome(experiment.sessions() if sessions is None else sessions)


class _Run:
    def __init__(self, policy: str, experiment: Experiment, weights: Weights) -> None:
        num_replicas = experiment.num_replicas
        self._now_s = 0.0
        self._router = make_router(
            policy, num_replicas, random.Random(experiment.seed + 1), lambda: self._now_s, weights
        )
        self._replicas = [
            Replica(self._router.cache_listener(number)) for number in range(num_replicas)
        ]
        self._num_left = experiment.num_requests
        self._num_warming = int(_WARMING * experiment.num_requests)
        self._events: list[tuple[float, int, str, AnySession, tuple[Turn, int] | None]] = []
        self._order = itertools.count()
        self._waits_s: list[float] = []
        self._num_hits = self._num_tokens = 0
        self._sent = [0] * num_replicas

    def outcome(self, sessions: Iterator[tuple[float, AnySession]]) -> Outcome:
        self._arrive(sessions)
        while self._events and self._num_left > 0:
            self._now_s, _, event, session, sent = heapq.heappop(self._events)
            match event, sent:
                case "turn", None:
                    self._send(session)
                case "arrival", None:
                    self._arrive(sessions)
                    self._send(session)
                case "first token", (turn, number):
                    self._router.first_token(turn)
                    self._add(self._replicas[number].decode_s(turn), "end", session, sent)
                case "end", (turn, number):
                    self._end(session, turn, number)
                case _:
                    raise AssertionError(event)
        return Outcome.of(self._waits_s, self._num_hits, self._num_tokens, self._sent)

    def _arrive(self, sessions: Iterator[tuple[float, AnySession]]) -> None:
        arrival = next(sessions, None)
        if arrival is not None:
            self._add(arrival[0] - self._now_s, "arrival", arrival[1])

    def _send(self, session: AnySession) -> None:
        turn = session.next_turn()
        number = self._router.send(turn)
        first_token_s, num_cached_tokens = self._replicas[number].start(turn, self._now_s)
        self._add(first_token_s - self._now_s, "first token", session, (turn, number))
        self._num_left -= 1
        if self._num_warming > 0:
            self._num_warming -= 1
            return
        self._waits_s.append(first_token_s - self._now_s)
        self._num_hits += num_cached_tokens
        self._num_tokens += turn.prompt.num_tokens
        self._sent[number] += 1

    def _end(self, session: AnySession, turn: Turn, number: int) -> None:
        answered = session.answered()
        self._replicas[number].end(answered)
        self._router.end(turn, answered)
        if (think_s := session.think_s()) is not None:
            self._add(think_s, "turn", session)

    def _add(
        self, after_s: float, event: str, session: AnySession, sent: tuple[Turn, int] | None = None
    ) -> None:
        heapq.heappush(
            self._events, (self._now_s + after_s, next(self._order), event, session, sent)
        )
