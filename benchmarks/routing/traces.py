"""Reads and makes traces in Mooncake's form: a line of JSON for each request.

    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}

`hash_ids` names the request's blocks of 512 tokens. Equal ids mean that all tokens up to there are
equal; the last block need not be whole; timestamps are milliseconds. Requests come at the times of
the trace, independent of earlier requests. `session_id` is our addition. Where it is missing, a
request that begins with all whole blocks of an earlier one continues that session, unless several
requests do so in different ways: then these blocks are common to the sessions. The next request of
a session shows the answer before it.
"""

import heapq
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec

from benchmarks.routing.prompts import BLOCK_TOKENS, CachedText, Turn, add_keys
from ouzel.routing import RequestKeys

TRACE_BLOCK_TOKENS = 512
_PER_BLOCK = TRACE_BLOCK_TOKENS // BLOCK_TOKENS
_MAX_TOKENS = 32_768
_SECONDS_PER_TOKEN = 0.03


class TraceRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    timestamp: int
    input_length: int
    output_length: int
    hash_ids: list[int]
    session_id: int | None = None


_line = msgspec.json.Decoder(TraceRequest)


def read_trace(path: Path) -> list[TraceRequest]:
    requests = [_line.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
    return sorted(requests, key=lambda request: request.timestamp)


def write_trace(requests: Iterable[TraceRequest], path: Path) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(request) + b"\n" for request in requests))


class TracedSession:
    """A session of one turn; a continued session is a request of its own with the same number."""

    def __init__(self, turn: Turn, answered: CachedText) -> None:
        self._turn = turn
        self._answered = answered

    def next_turn(self) -> Turn:
        return self._turn

    def answered(self) -> CachedText:
        return self._answered

    def think_s(self) -> float | None:
        return None


def replay(
    requests: Sequence[TraceRequest], *, speed: float = 1.0
) -> Iterator[tuple[float, TracedSession]]:
    """Yields the requests at the times of the trace, which runs `speed` times as fast."""
    sessions = _sessions(requests)
    following: dict[int, TraceRequest] = {}  # session -> its next request
    answers: list[list[int]] = []
    for session, request in zip(reversed(sessions), reversed(requests), strict=True):
        after = following.get(session, request)
        following[session] = request
        num_blocks = (request.input_length + request.output_length) // TRACE_BLOCK_TOKENS
        ids = _whole(request)
        goes_on = _whole(after)[: len(ids)] == ids
        answers.append(_whole(after)[:num_blocks] if goes_on else ids)
    for session, request, answered in zip(sessions, requests, reversed(answers), strict=True):
        prompt = _text(session, _whole(request), request.input_length)
        turn = Turn(session, prompt, max(1, request.output_length))
        text = _text(session, answered, request.input_length + request.output_length)
        yield request.timestamp / 1000 / speed, TracedSession(turn, text)


def _sessions(requests: Sequence[TraceRequest]) -> list[int]:
    """Returns the number of each request's session."""
    nexts: dict[int, set[int]] = {}  # whole block -> the blocks that follow it in any request
    for request in requests:
        for block, after in pairwise(_whole(request)):
            nexts.setdefault(block, set()).add(after)
    latest: dict[int, int] = {}  # session, by the last whole block of its latest request
    sessions: list[int] = []
    for number, request in enumerate(requests):
        ids = _whole(request)
        own = (
            latest[block]
            for block in reversed(ids)
            if block in latest and len(nexts.get(block, ())) <= 1
        )
        session = next(own, number) if request.session_id is None else request.session_id
        sessions.append(session)
        if ids:
            latest[ids[-1]] = session
    return sessions


def _whole(request: TraceRequest) -> list[int]:
    return request.hash_ids[: request.input_length // TRACE_BLOCK_TOKENS]


def _text(session: int, ids: list[int], num_tokens: int) -> CachedText:
    blocks = [block * _PER_BLOCK + part for block in ids for part in range(_PER_BLOCK)]
    keys: list[bytes] = []
    add_keys(keys, blocks, len(blocks) * BLOCK_TOKENS)
    return CachedText(
        blocks,
        num_tokens,
        RequestKeys(session.to_bytes(8, "little"), tuple(keys), num_tokens, BLOCK_TOKENS),
    )


@dataclass(frozen=True, slots=True)
class _Tenant:
    beginnings: list[tuple[int, list[int]]]  # system prompts: tokens, ids
    mean_turns: float
    new_tokens: float  # median
    output_tokens: float
    think_s: float


def generate_trace(
    *, seed: int, num_requests: int, requests_per_s: float, num_tenants: int = 24
) -> list[TraceRequest]:
    """Makes a trace: tenants of very different size share system prompts, and sessions grow.

    Each tenant has bursts.
    """
    rng = random.Random(seed)
    ids = itertools.count()
    tenants = [_tenant(rng, ids) for _ in range(num_tenants)]
    shares = [1 / (rank + 1) for rank in range(num_tenants)]
    turns_per_s = sum(
        share * tenant.mean_turns for share, tenant in zip(shares, tenants, strict=True)
    )
    starts = heapq.merge(
        *(
            _starts(random.Random(rng.getrandbits(64)), place, share * requests_per_s / turns_per_s)
            for place, share in enumerate(shares)
        )
    )
    pending: list[tuple[float, int, TraceRequest]] = []  # later turns of sessions that have begun
    trace: list[TraceRequest] = []
    order, numbers = itertools.count(), itertools.count()
    while len(trace) < num_requests:
        start_s, place = next(starts)
        while pending and pending[0][0] <= start_s:
            trace.append(heapq.heappop(pending)[2])
        for request in _session(rng, tenants[place], start_s, ids, next(numbers)):
            heapq.heappush(pending, (request.timestamp / 1000, next(order), request))
    return trace[:num_requests]


def _tenant(rng: random.Random, ids: "itertools.count[int]") -> _Tenant:
    lengths = [
        round(math.exp(rng.uniform(math.log(200), math.log(8000))))
        for _ in range(rng.randint(1, 3))
    ]
    is_agent = rng.random() < 0.4
    return _Tenant(
        beginnings=[
            (length, list(itertools.islice(ids, length // TRACE_BLOCK_TOKENS)))
            for length in lengths
        ],
        mean_turns=rng.uniform(8, 25) if is_agent else rng.uniform(1, 8),
        new_tokens=rng.uniform(300, 1200) if is_agent else rng.uniform(50, 400),
        output_tokens=rng.uniform(50, 200) if is_agent else rng.uniform(100, 400),
        think_s=rng.uniform(1, 4) if is_agent else rng.uniform(8, 30),
    )


def _starts(rng: random.Random, place: int, rate: float) -> Iterator[tuple[float, int]]:
    """Yields the times at which a tenant's sessions begin: three quarters in bursts of seconds."""
    now_s, ends_s = 0.0, 0.0
    while True:
        quiet_s, burst_s = rng.expovariate(1 / 100), rng.expovariate(1 / 5)
        for length_s, times in ((quiet_s, 0.2625), (burst_s, 15.75)):
            ends_s += length_s
            while (next_s := now_s + rng.expovariate(rate * times)) < ends_s:
                now_s = next_s
                yield now_s, place
            now_s = ends_s


def _session(
    rng: random.Random, tenant: _Tenant, start_s: float, ids: "itertools.count[int]", number: int
) -> Iterator[TraceRequest]:
    length, beginning = rng.choice(tenant.beginnings)
    blocks = list(beginning)
    now_s = start_s
    while True:
        length += _around(rng, tenant.new_tokens)
        if length > _MAX_TOKENS:
            return
        num_output_tokens = _around(rng, tenant.output_tokens)
        blocks += itertools.islice(ids, length // TRACE_BLOCK_TOKENS - len(blocks))
        shown = [*blocks, next(ids)] if length % TRACE_BLOCK_TOKENS else list(blocks)
        yield TraceRequest(round(1000 * now_s), length, num_output_tokens, shown, number)
        if rng.random() < 1 / tenant.mean_turns:
            return
        length += num_output_tokens
        now_s += num_output_tokens * _SECONDS_PER_TOKEN + _around(rng, 1000 * tenant.think_s) / 1000


def _around(rng: random.Random, median: float) -> int:
    return max(1, round(rng.lognormvariate(math.log(median), 0.8)))
