"""`benchmarks.routing` is a simulation of sessions, traces, replicas and routing policies."""

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
    """Returns sessions with the same first 1,024 tokens that begin within seconds of each other."""
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
def test_two_replicas_share_growing_sessions_and_hit_as_often_as_one(seed: int) -> None:
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
    # at least two policies decide differently
    assert len({outcome.first_token_p50_s for outcome in outcomes.values()}) > 5


def test_a_simulation_repeats_itself() -> None:
    experiment = Experiment("mix", 4, 300, 0.2, 1)

    assert simulate(OURS, experiment) == simulate(OURS, experiment)


def test_our_policy_hits_more_than_random_choice() -> None:
    experiment = Experiment("agents", 8, 600, 0.2, 3)
    ours, chance = (simulate(policy, experiment) for policy in (OURS, "random"))

    assert ours.hit_rate > 1.5 * chance.hit_rate
    assert ours.first_token_p99_s < 0.5 * chance.first_token_p99_s


def test_a_replica_computes_uncached_tokens() -> None:
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


def test_a_generated_trace_has_the_traits_of_real_traces() -> None:
    """Real traces have prompts that many requests share, growing sessions, and bursts."""
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
    # counts of requests for each ten seconds
    counts = [list(begun.values()).count(place) for place in range(max(begun.values()))]
    # the variance would equal the mean if the requests were independent
    assert variance(counts) > 2 * mean(counts)


def test_requests_that_continue_another_are_its_session_with_its_answer() -> None:
    trace = [
        TraceRequest(0, 1100, 500, [1, 2, 3]),
        TraceRequest(1000, 1100, 10, [1, 9, 10]),
        TraceRequest(2000, 600, 10, [1, 11]),  # this prompt has no block of its own
        TraceRequest(5000, 1700, 20, [1, 2, 4, 5]),
        TraceRequest(9000, 300, 5, [7]),
    ]

    replayed = list(replay(trace, speed=2.0))

    assert [time_s for time_s, _ in replayed] == [0.0, 0.5, 1.0, 2.5, 4.5]
    turns = [session.next_turn() for _, session in replayed]
    assert [turn.session for turn in turns] == [0, 1, 2, 0, 4]
    assert [len(turn.prompt.blocks) for turn in turns] == [8, 8, 4, 12, 0]
    # the answer filled the third block
    assert replayed[0][1].answered().blocks == turns[3].prompt.blocks


def test_sessions_are_found_in_a_trace_without_session_ids() -> None:
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
    # a session's first turns may have no block of their own
    assert len(set(found)) < 1.6 * len(set(named))
