"""Times keys and choices in one thread: the shortest of 300 times."""

import json
import random
import time
from collections.abc import Callable
from functools import partial

from ouzel.routing import PrefixPolicy, RequestKeys, make_body_keys, make_token_keys

_WORDS = "what the server reads of a request before it knows where it goes "


def speed_table() -> str:
    lines = ["| what | microseconds |", "|---|---:|"]
    for name, work in (*_keys(), *_choices()):
        lines.append(f"| {name} | {_shortest_us(work):,.0f} |")
    return "\n".join(lines)


def _shortest_us(work: Callable[[], object]) -> float:
    times = []
    for _ in range(300):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times) * 1e6


def _keys() -> list[tuple[str, Callable[[], object]]]:
    rows: list[tuple[str, Callable[[], object]]] = []
    for size in (2**10, 100 * 2**10, 2**20, 8 * 2**20):
        text = _WORDS * 16
        messages = [
            {"role": "user", "content": text}
            for _ in range(max(1, (size - 200) // (len(text) + 40)))
        ]
        body = json.dumps({"model": "m", "messages": messages}).encode()
        rows.append((f"keys of a body of {size // 1024:,} KiB", partial(make_body_keys, body)))
    token_ids = [random.Random(1).randrange(150_000) for _ in range(100_000)]
    for length in (1000, 10_000, 100_000):
        rows.append(
            (
                f"keys of {length:,} token ids, blocks of 32",
                partial(make_token_keys, token_ids[:length], block_size=32),
            )
        )
    known = make_token_keys(token_ids[:10_000], block_size=32)
    answered = token_ids[:10_300]
    rows.append(
        (
            "keys of 300 token ids after 10,000 known ones",
            partial(make_token_keys, answered, block_size=32, known=known),
        )
    )
    return rows


def _serve(policy: PrefixPolicy, keys: RequestKeys) -> None:
    policy.ended(policy.routed(keys, "replica-0"), keys)


def _choices() -> list[tuple[str, Callable[[], object]]]:
    rows: list[tuple[str, Callable[[], object]]] = []
    for num_replicas in (2, 8, 64, 512):
        names = [f"replica-{number}" for number in range(num_replicas)]
        policy = PrefixPolicy()
        rng = random.Random(num_replicas)
        keys = [
            make_token_keys([number % 40] * 1024 + [number] * rng.randrange(10_000), block_size=32)
            for number in range(40 * num_replicas)
        ]
        for of_request in keys:
            policy.routed(of_request, policy.choose(of_request, names)[0])
        rows.append((f"choice of {num_replicas}, all busy", partial(policy.choose, keys[7], names)))
        rows.append((f"noting begin and end, {num_replicas}", partial(_serve, policy, keys[7])))
    return rows
