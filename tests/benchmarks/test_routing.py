"""What `benchmarks.routing` simulates: sessions, traces, replicas, and that policies are told what they need."""

import itertools
import random
from pathlib import Path
from statistics import mean, variance

import pytest
from msgspec import structs

from benchmarks.routing.policies import OURS, POLICIES
from benchmarks.routing.prompts import GrowingText
from benchmarks.routing.replica import OVERHEAD_S, TOKENS_PER_S, Replica
from benchmarks.routing.sessions import Kind, Session
from benchmarks.routing.simulation import Experiment, Outcome, simulate
from benchmarks.routing.traces import TraceRequest, generate_trace, read_trace, replay, write_trace

GROWING = Kind(1, 1.0, 1024, (12, 12), (50, 300), (50, 150), lambda rng: rng.uniform(0, 4), 200)


def growing_sessions(num_sessions: int, seed: int) -> list[tuple[float, Session]]:
    """Sessions that have the first 1,024 tokens in common begin within seconds."""
    numbers = itertools.count()
    beginning = list(itertools.islice(numbers, 8))
    rng = random.Random(seed)
    return [
        (
            0.5 * number,
            Session(
                number,
                GROWING,
                GrowingText(number, beginning, numbers),
                random.Random(rng.random()),
            ),
        )
        for number in range(num_sessions)
    ]


def serve_growing_sessions(num_replicas: int, seed: int) -> Outcome:
    experiment = Experiment("growing", num_replicas, 24 * 12, 0.0, seed)
    return simulate(OURS, experiment, sessions=iter(growing_sessions(24, seed)))


@pytest.mark.parametrize("seed", range(5))
def test_two_replicas_share_growing_sessions_and_find_what_one_would(seed: int) -> None:
    one, two = serve_growing_sessions(1, seed), serve_growing_sessions(2, seed)

    assert two.hit_rate >= 0.9 * one.hit_rate > 0.5
    assert two.largest_share <= 2 * 0.65


@pytest.mark.parametrize("workload", ["chat", "agents", "documents", "mix", "trace"])
def test_every_policy_serves_every_workload(workload: str) -> None:
    experiment = Experiment(workload, 4, 150, 0.2, 1)

    outcomes = {policy: simulate(policy, experiment) for policy in POLICIES}

    assert all(
        0 <= outcome.hit_rate < 1 <= outcome.largest_share <= 4 for outcome in outcomes.values()
    )
    assert (
        len({outcome.first_token_p50_s for outcome in outcomes.values()}) > 5
    )  # they do not all do the same


def test_a_simulation_repeats_itself() -> None:
    experiment = Experiment("mix", 4, 300, 0.2, 1)

    assert simulate(OURS, experiment) == simulate(OURS, experiment)


def test_ours_finds_more_than_chance_does() -> None:
    experiment = Experiment("agents", 8, 600, 0.2, 3)
    ours, chance = (simulate(policy, experiment) for policy in (OURS, "random"))

    assert ours.hit_rate > 1.5 * chance.hit_rate
    assert ours.first_token_p99_s < 0.5 * chance.first_token_p99_s


def test_a_replica_computes_what_it_has_not_cached() -> None:
    ((_, session),) = growing_sessions(1, 1)
    replica, turn = Replica(), session.next_turn()

    first_s, num_cached_tokens = replica.start(turn, 10.0)
    assert num_cached_tokens == 0
    assert first_s == pytest.approx(
        10 + OVERHEAD_S + turn.prompt.num_tokens / TOKENS_PER_S * (1 + 1 / 64)
    )

    replica.end(answered := session.answered())
    turn = session.next_turn()
    _, num_cached_tokens = replica.start(turn, 20.0)
    assert num_cached_tokens == 128 * len(answered.blocks)


def test_a_trace_is_the_same_for_the_same_seed_and_goes_through_a_file(tmp_path: Path) -> None:
    trace = generate_trace(seed=5, num_requests=500, requests_per_s=3.0)
    assert trace == generate_trace(seed=5, num_requests=500, requests_per_s=3.0)
    assert trace != generate_trace(seed=6, num_requests=500, requests_per_s=3.0)

    write_trace(trace, tmp_path / "trace.jsonl")

    assert read_trace(tmp_path / "trace.jsonl") == sorted(
        trace, key=lambda request: request.timestamp
    )


def test_a_generated_trace_has_what_real_ones_have() -> None:
    """Prompts that many requests share, sessions that grow, times that come in bursts."""
    trace = generate_trace(seed=7, num_requests=4000, requests_per_s=10.0)
    turns = [session.next_turn() for _, session in replay(trace)]

    assert all(len(request.hash_ids) == -(-request.input_length // 512) for request in trace)
    num_turns = [
        len(list(group)) for _, group in itertools.groupby(sorted(turn.session for turn in turns))
    ]
    assert (min(num_turns), max(num_turns) > 10) == (1, True)
    first_blocks = [request.hash_ids[0] for request in trace]
    assert max(map(first_blocks.count, set(first_blocks))) > 100
    begun = {request.session_id: request.timestamp // 10_000 for request in reversed(trace)}
    counts = [
        list(begun.values()).count(place) for place in range(max(begun.values()))
    ]  # in ten seconds each
    assert variance(counts) > 2 * mean(counts)  # once the mean if they were independent


def test_requests_that_go_on_from_another_are_its_session_and_say_what_was_answered() -> None:
    trace = [
        TraceRequest(0, 1100, 500, [1, 2, 3]),
        TraceRequest(1000, 1100, 10, [1, 9, 10]),
        TraceRequest(2000, 600, 10, [1, 11]),  # has nothing that is its own
        TraceRequest(5000, 1700, 20, [1, 2, 4, 5]),
        TraceRequest(9000, 300, 5, [7]),
    ]

    replayed = list(replay(trace, speed=2.0))

    assert [time_s for time_s, _ in replayed] == [0.0, 0.5, 1.0, 2.5, 4.5]
    turns = [session.next_turn() for _, session in replayed]
    assert [turn.session for turn in turns] == [0, 1, 2, 0, 4]
    assert [len(turn.prompt.blocks) for turn in turns] == [8, 8, 4, 12, 0]
    assert (
        replayed[0][1].answered().blocks == turns[3].prompt.blocks
    )  # its answer made the third block whole


def test_sessions_are_found_in_a_trace_that_does_not_name_them() -> None:
    trace = generate_trace(seed=3, num_requests=1500, requests_per_s=5.0)
    unnamed = [structs.replace(request, session_id=None) for request in trace]
    named, found = (
        [session.next_turn().session for _, session in replay(of)] for of in (trace, unnamed)
    )

    pairs = list(zip(named, found, strict=True))
    num_mixed = sum(
        len({of for of, other in pairs if other == session}) > 1 for session in set(found)
    )
    assert num_mixed < 0.02 * len(set(found))
    assert len(set(found)) < 1.6 * len(
        set(named)
    )  # a session's first turns may have nothing of its own
