"""Tests which replica gets a request, by the reports of the replicas, without Ray."""

import json
from collections import Counter

import pytest

from ouzel.cluster.prefix_choice import MAX_REPORT_DELAY_S, PrefixChoice
from ouzel.cluster.replica_load import ReplicaLoad

IDLE = {"a": ReplicaLoad(), "b": ReplicaLoad()}


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def chat(session: int, num_turns: int = 1) -> bytes:
    """Makes the body of a session's turn; each turn adds 2 KB to the prompt."""
    text = f"{session}: what an owl eats. " * 100
    return json.dumps(
        {"messages": [{"role": "user", "content": f"{turn} {text}"} for turn in range(num_turns)]}
    ).encode()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def choice(clock: Clock) -> PrefixChoice:
    return PrefixChoice(clock)


def test_sessions_stay_and_are_shared_out(choice: PrefixChoice, clock: Clock) -> None:
    homes: dict[int, set[str]] = {session: set() for session in range(24)}
    for num_turns in range(1, 5):
        for session, replicas in homes.items():
            replicas.add(choice.replica_for(chat(session, num_turns), IDLE))
            clock.now_s += 0.5
    assert all(len(replicas) == 1 for replicas in homes.values())
    assert max(Counter(min(replicas) for replicas in homes.values()).values()) <= 16


def test_a_replica_that_reports_much_work_gets_less(choice: PrefixChoice) -> None:
    loads = {"a": ReplicaLoad(num_running=40), "b": ReplicaLoad()}
    assert {choice.replica_for(chat(session), loads) for session in range(4)} == {"b"}


def test_a_routed_request_counts_until_the_replica_should_have_reported_it(
    choice: PrefixChoice, clock: Clock
) -> None:
    for _ in range(400):
        choice.replica_for(b"", {"a": ReplicaLoad()})
    assert {choice.replica_for(chat(session), IDLE) for session in range(8)} == {"b"}
    clock.now_s += MAX_REPORT_DELAY_S + 0.1
    assert {choice.replica_for(chat(session), IDLE) for session in range(8, 24)} == {"a", "b"}


def test_the_next_turn_of_a_session_says_that_the_last_has_ended(choice: PrefixChoice) -> None:
    """No replica reports in this time; unfinished turns would send the next ones elsewhere."""
    turns = [
        {"role": "user", "content": "what an owl eats " * 200},
        *({"role": "user", "content": "and?"},) * 40,
    ]
    bodies = [json.dumps({"messages": turns[:number]}).encode() for number in range(1, 40)]
    assert len({choice.replica_for(body, IDLE) for body in bodies}) == 1


def test_a_replica_that_is_gone_is_not_missed(choice: PrefixChoice) -> None:
    home = choice.replica_for(chat(0), IDLE)
    rest = {name: load for name, load in IDLE.items() if name != home}
    assert {choice.replica_for(chat(0, turns), rest) for turns in range(1, 4)} == set(rest)


def test_bodies_that_cannot_be_read_are_shared_out(choice: PrefixChoice) -> None:
    given = Counter(choice.replica_for(b'{"messages": [', IDLE) for _ in range(40))
    assert set(given.values()) == {20}
