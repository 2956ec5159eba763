"""Requests go to the replica that has the prompt if loads are equal, else to an idle one."""

import random
from dataclasses import dataclass

import pytest

from ouzel.routing import (
    LeastConnections,
    PrefixPolicy,
    RequestKeys,
    RoutingPolicy,
    Ticket,
    Weights,
    make_token_keys,
)
from ouzel.routing.block_index import BlockIndex

NAMES = ["a", "b", "c"]


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def prompt(session: int, num_tokens: int, shared: int = 0) -> RequestKeys:
    """Makes the keys of a session's prompt; all sessions share the first `shared` tokens."""
    token_ids = [1] * shared + [1000 + session] * (num_tokens - shared)
    return make_token_keys(token_ids, block_size=16, session=session.to_bytes(8, "little"))


def serve(policy: RoutingPolicy, keys: RequestKeys | None, names: list[str] = NAMES) -> str:
    """Takes a request from its choice to its end."""
    name = policy.choose(keys, names)[0]
    ticket = policy.routed(keys, name)
    policy.first_token(ticket)
    policy.ended(ticket)
    return name


def chain(session: bytes, num_tokens: int = 100) -> RequestKeys:
    return RequestKeys(session, (), num_tokens, 256, is_continued=True)


def test_a_session_stays_at_its_replica_while_loads_are_equal() -> None:
    policy = PrefixPolicy(clock=Clock())
    homes = {session: serve(policy, prompt(session, 500)) for session in range(30)}

    for turn in range(1, 5):
        assert {
            session: serve(policy, prompt(session, 500 + 300 * turn)) for session in homes
        } == homes
    assert set(homes.values()) == set(NAMES)


def test_a_new_session_goes_to_the_idle_replica() -> None:
    policy = PrefixPolicy(clock=Clock())
    for session, name in enumerate(["a", "b"]):
        policy.routed(prompt(session, 2000), name)

    assert all(policy.choose(prompt(session, 500), NAMES)[0] == "c" for session in range(100, 130))


def test_a_shared_beginning_is_worth_its_tokens_only() -> None:
    policy = PrefixPolicy(clock=Clock())
    policy.ended(policy.routed(prompt(1, 2000, shared=1600), "a"))

    assert policy.choose(prompt(2, 2000, shared=1600), NAMES)[0] == "a"
    policy.routed(prompt(3, 4000), "a")  # it has to be computed first
    assert policy.choose(prompt(2, 2000, shared=1600), NAMES)[0] != "a"


def test_a_prompt_that_is_computed_leaves_the_way_free() -> None:
    policy = PrefixPolicy(clock=Clock(), weights=Weights(unfinished_tokens=100, recent=0))
    policy.ended(policy.routed(prompt(1, 3000), "a"))
    ticket = policy.routed(prompt(2, 8000), "a")
    assert policy.choose(prompt(1, 3100), NAMES)[0] != "a"

    policy.first_token(ticket)

    assert policy.choose(prompt(1, 3100), NAMES)[0] == "a"


def test_unfinished_requests_count_until_they_end() -> None:
    policy = PrefixPolicy(clock=Clock(), weights=Weights(unfinished_tokens=100, recent=0))
    policy.ended(policy.routed(prompt(1, 1000), "a"))
    tickets = [policy.routed(None, "a") for _ in range(20)]
    assert policy.choose(prompt(1, 1000), NAMES)[0] != "a"

    for ticket in tickets:
        policy.ended(ticket)

    assert policy.choose(prompt(1, 1000), NAMES)[0] == "a"


def test_a_request_that_ends_before_its_first_token_leaves_no_work_behind() -> None:
    policy = PrefixPolicy(clock=Clock(), weights=Weights(recent=0))
    expected = policy.choose(prompt(9, 700), NAMES)

    policy.ended(policy.routed(prompt(1, 50_000), expected[0]))

    assert policy.choose(prompt(9, 700), NAMES) == expected


def test_recent_work_fades() -> None:
    clock = Clock()
    policy = PrefixPolicy(clock=clock, weights=Weights(recent=0.1, half_life_s=60))
    favourite = policy.choose(prompt(5, 500), NAMES)[0]
    policy.ended(policy.routed(prompt(1, 30_000), favourite))
    assert policy.choose(prompt(5, 500), NAMES)[0] != favourite

    clock.now_s = 1e6

    assert policy.choose(prompt(5, 500), NAMES)[0] == favourite


def test_recent_work_is_counted_alike_after_years() -> None:
    young, old = PrefixPolicy(clock=Clock()), PrefixPolicy(clock=(clock := Clock()))
    for now_s in (0.0, 3e3, 3e4, 1e9):
        clock.now_s = now_s
        serve(old, prompt(1, 100))
    clock.now_s += 1e5
    for policy in (young, old):
        for session, name in enumerate("aabbc"):
            policy.ended(policy.routed(prompt(50 + session, 4000), name))

    assert young.choose(prompt(2, 500), NAMES)[0] == old.choose(prompt(2, 500), NAMES)[0] == "c"


def test_answers_are_known_too() -> None:
    policy = PrefixPolicy(clock=Clock())
    policy.ended(policy.routed(prompt(1, 100), "b"), final_keys=prompt(1, 5000))
    policy.ended(policy.routed(prompt(1, 1000), "c"))

    assert policy.choose(prompt(1, 5100), NAMES)[0] == "b"


def test_only_candidates_are_chosen_and_all_of_them_are() -> None:
    policy = PrefixPolicy(clock=Clock())
    policy.ended(policy.routed(prompt(1, 1000), "a"))

    assert sorted(policy.choose(prompt(1, 1000), ["b", "c"])) == ["b", "c"]
    assert policy.choose(prompt(1, 1000), ["b", "a"])[0] == "a"
    assert sorted(policy.choose(None, NAMES)) == NAMES
    for keys in (prompt(1, 1000), chain(b"chain"), None):
        assert policy.choose(keys, []) == []


def test_a_forgotten_replica_has_nothing_any_more() -> None:
    policy = PrefixPolicy(clock=Clock())
    home = serve(policy, prompt(1, 4000))
    lost = policy.routed(prompt(2, 9000), home)
    policy.forget(home)
    other = next(name for name in NAMES if name != home)
    policy.ended(policy.routed(prompt(1, 1000), other))

    assert policy.choose(prompt(1, 4000), NAMES)[0] == other
    policy.first_token(lost)  # late calls change nothing
    policy.ended(lost, final_keys=prompt(2, 9000))
    assert policy.num_blocks == len(prompt(1, 1000).blocks)


def test_routers_that_know_nothing_agree_on_a_session() -> None:
    orders = [
        [
            PrefixPolicy(clock=Clock()).choose(prompt(session, 500), names)[0]
            for session in range(200)
        ]
        for names in (NAMES, NAMES[::-1])
    ]

    assert orders[0] == orders[1]
    assert all(orders[0].count(name) > 40 for name in NAMES)


def test_a_session_moves_only_if_its_own_replica_leaves() -> None:
    policy = PrefixPolicy(clock=Clock())
    for session in range(100):
        before, after = (
            policy.choose(prompt(session, 500), names)[0] for names in (NAMES, NAMES[:2])
        )
        assert before in ("c", after)


def test_a_choice_is_the_same_in_every_process() -> None:
    """A choice by `hash()` would differ, because its seed differs in every process."""
    policy = PrefixPolicy(clock=Clock())

    chosen = "".join(policy.choose(prompt(session, 500), NAMES)[0] for session in range(12))

    assert chosen == "acbbccbbbbba"


def test_a_chain_stays_though_the_server_has_its_history() -> None:
    policy = PrefixPolicy(clock=Clock())
    homes = [serve(policy, chain(bytes([number]) * 8)) for number in range(30)]
    assert set(homes) == set(NAMES)
    for _ in range(3):
        assert [serve(policy, chain(bytes([number]) * 8)) for number in range(30)] == homes

    busy = policy.routed(prompt(1, 50_000), homes[0])
    assert serve(policy, chain(bytes([0]) * 8)) != homes[0]
    policy.ended(busy)


def test_a_chain_of_a_forgotten_replica_is_unknown() -> None:
    policy = PrefixPolicy(clock=Clock(), weights=Weights(recent=0))
    own = policy.choose(chain(b"12345678"), NAMES)[0]
    elsewhere = next(name for name in NAMES if name != own)
    policy.ended(policy.routed(chain(b"12345678", 9000), elsewhere))
    assert policy.choose(chain(b"12345678"), NAMES)[0] == elsewhere

    policy.forget(elsewhere)

    assert policy.choose(chain(b"12345678"), NAMES)[0] == own


def test_among_very_many_replicas_the_one_with_the_prompt_is_found_and_no_busy_one() -> None:
    names = [f"replica-{number}" for number in range(512)]
    policy = PrefixPolicy(clock=Clock())
    for number, name in enumerate(names):
        policy.ended(policy.routed(prompt(number, 600, shared=320), name))
    for name in names[::2]:
        policy.routed(prompt(9999, 3000), name)

    for number in range(1, 512, 50):
        assert policy.choose(prompt(number, 700, shared=320), names)[0] == names[number | 1]
        order = policy.choose(prompt(10_000 + number, 700), names)
        assert names.index(order[0]) % 2 == 1
        assert sorted(order) == sorted(names)


def test_memory_is_bounded() -> None:
    policy = PrefixPolicy(max_blocks=500, clock=Clock())
    for session in range(400):
        serve(policy, prompt(session, 600), [f"r{session % 7}"])
        assert policy.num_blocks <= 500
    assert policy.num_blocks > 300


def test_of_one_prompt_the_end_is_given_up_first() -> None:
    index = BlockIndex(max_blocks=20)
    index.add(prompt(1, 16 * 15), "a")
    index.add(prompt(2, 16 * 10), "a")

    assert index.num_held(prompt(1, 16 * 15).blocks) == {"a": 10}
    assert index.num_held(prompt(2, 16 * 10).blocks) == {"a": 10}


def test_blocks_that_a_cache_cannot_hold_are_given_up() -> None:
    index = BlockIndex(max_blocks=10_000, cache_tokens=2000)
    for session, name in ((1, "a"), (1, "b"), (2, "a")):
        index.add(prompt(session, 1600), name)

    assert index.num_held(prompt(1, 1600).blocks) == {"a": 25, "b": len(prompt(1, 1600).blocks)}
    assert index.num_held(prompt(2, 1600).blocks) == {"a": len(prompt(2, 1600).blocks)}


@pytest.mark.parametrize("seed", range(5))
def test_the_index_has_the_blocks_that_replicas_got_and_did_not_evict(seed: int) -> None:
    """The test does the same operations on an index of plain sets."""
    rng = random.Random(seed)
    index, expected = BlockIndex(max_blocks=10**6), dict[str, set[bytes]]()
    for _ in range(300):
        keys = prompt(rng.randrange(8), rng.randrange(800), shared=160)
        name = rng.choice("abcdefgh")
        if rng.random() < 0.1:
            index.forget(name)
            expected.pop(name, None)
        else:
            index.add(keys, name)
            expected.setdefault(name, set()).update(keys.blocks)
        asked = prompt(rng.randrange(8), rng.randrange(800), shared=160).blocks
        counts = {
            name: next(
                (place for place, block in enumerate(asked) if block not in held), len(asked)
            )
            for name, held in expected.items()
        }
        assert index.num_held(asked) == {name: count for name, count in counts.items() if count}
        assert all(index.num_held_by(name, asked) == count for name, count in counts.items())
        assert len(index) == sum(map(len, expected.values()))


class TestLeastConnections:
    def test_the_replica_with_the_fewest_unfinished_requests_comes_first(self) -> None:
        policy = LeastConnections()
        tickets: list[Ticket] = [policy.routed(None, name) for name in "aabbbc"]
        assert policy.choose(None, NAMES) == ["c", "a", "b"]

        for ticket in tickets[2:5]:
            policy.first_token(ticket)
            policy.ended(ticket)

        assert policy.choose(prompt(1, 100), NAMES) == ["b", "c", "a"]

    def test_equal_replicas_take_turns(self) -> None:
        assert [serve(policy, None) for policy in [LeastConnections()] for _ in range(6)] == [
            *NAMES,
            *NAMES,
        ]

    def test_a_forgotten_replica_begins_anew(self) -> None:
        policy = LeastConnections()
        late = policy.routed(None, "a")
        policy.forget("a")
        policy.routed(None, "b")

        policy.ended(late)

        assert policy.num_unfinished("a") == 0
        assert policy.choose(None, ["b", "a"]) == ["a", "b"]
