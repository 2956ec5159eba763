"""Ray Serve routes requests to the replica that has their prompts cached.

This relies on a hook in Ray's own code, which may change.
"""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import Any  # JSON

import httpx
import psutil
import pytest

from tests.cluster.ray_cluster import ROOT, Cluster, install_ray, ray_environment

pytestmark = pytest.mark.release("Ray Serve: requests stay where their prompts are cached")
NUM_SESSIONS, NUM_TURNS = 17, 3  # odd: taking turns would part a session from its cache
NOT_BY_PREFIXES = "requests go to the replica with the fewest, not by their prefixes: "


@pytest.fixture(scope="module")
def two_replicas(cluster: Cluster) -> Cluster:
    """Returns the cluster with two new replicas."""
    before = cluster.replicas()
    cluster.deploy({"num_replicas": 2, "max_choices": 9}, num_replicas=2)
    while before.keys() & cluster.replicas().keys():
        time.sleep(0.5)
    cluster.wait_for(2)
    return cluster


class Session:
    """A chat that begins with its own prompt of some 800 tokens."""

    def __init__(self, number: int) -> None:
        self.messages = [
            {
                "role": "user",
                "content": f"{number}: " + f"Tell me of owl {number}, and of its vole. " * 60,
            }
        ]
        self.num_known_tokens = 0  # tokens of the turn before

    async def turn(self, client: httpx.AsyncClient) -> bool | None:
        """Sends a turn; returns whether its replica had the turn before in the cache.

        The first turn of a session returns None.
        """
        body = {"messages": self.messages, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
        try:
            answer = await client.post("/v1/chat/completions", json=body)
        except (
            httpx.RemoteProtocolError
        ):  # HAProxy had a connection to a replica that is gone: clients ask again
            answer = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        chat = answer.json()
        usage, num_known = chat["usage"], self.num_known_tokens
        self.messages += [chat["choices"][0]["message"], {"role": "user", "content": "And then?"}]
        self.num_known_tokens = usage["prompt_tokens"]
        return (
            usage["prompt_tokens_details"]["cached_tokens"] > 0.9 * num_known if num_known else None
        )


async def measure_share_found(
    sessions: list[Session], client: httpx.AsyncClient, num_turns: int
) -> float:
    """Returns the share of turns whose earlier turn was in the cache, without first turns."""
    turns = [await session.turn(client) for _ in range(num_turns) for session in sessions]
    found = [turn for turn in turns if turn is not None]
    return sum(found) / max(1, len(found))


def count_requests(processes: Mapping[str, int]) -> list[float]:
    """Returns the number of requests that each replica has answered."""
    counts = []
    for process in processes.values():
        connections = psutil.Process(process).net_connections("tcp")
        [port] = {
            each.laddr.port
            for each in connections
            if each.status == "LISTEN" and 30000 <= each.laddr.port < 31000
        }
        lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
        counts.append(
            sum(
                float(line.split()[-1])
                for line in lines
                if line.startswith("ouzel_request_prompt_tokens_count")
            )
        )
    return counts


def test_ray_has_the_hooks_that_the_door_needs() -> None:
    """A canary: it fails if another version of Ray has changed its own code."""
    python = str(install_ray() / "python")
    output = subprocess.run(
        [python, "tests/cluster/routing_facts.py"],
        cwd=ROOT,
        env=ray_environment(),
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    facts: dict[str, Any] = json.loads(output)

    assert facts == {
        "hook": ["self", "ingress_request_router"],
        "handles begin": ["self", "kwargs"],
        "names of replicas": True,
        "list of replicas": [True, True],
        "question": True,
        "answer": True,
        "prefix": [True, []],
        "least connections": [False, []],
        "one replica": [False, []],
        "without RAY_SERVE_ENABLE_HA_PROXY": [
            False,
            [f"{NOT_BY_PREFIXES}RAY_SERVE_ENABLE_HA_PROXY is not 1"],
        ],
        "without RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY": [
            False,
            [f"{NOT_BY_PREFIXES}RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY is not 1"],
        ],
        "without a hook": [
            False,
            [
                f"{NOT_BY_PREFIXES}this version of Ray has no "
                "Application._with_ingress_request_router"
            ],
        ],
    }


async def test_sessions_stay_with_a_replica(
    two_replicas: Cluster, client: httpx.AsyncClient
) -> None:
    before = count_requests(two_replicas.replicas())
    share = await measure_share_found(
        [Session(number) for number in range(NUM_SESSIONS)], client, NUM_TURNS
    )
    given = [
        after - count
        for after, count in zip(count_requests(two_replicas.replicas()), before, strict=True)
    ]

    assert sum(given) == NUM_SESSIONS * NUM_TURNS
    assert max(given) <= 0.65 * sum(given)
    assert share >= 0.85  # taking turns would give 0.5


async def test_sessions_of_a_replica_that_is_killed_go_on(
    two_replicas: Cluster, client: httpx.AsyncClient
) -> None:
    sessions = [Session(number) for number in range(100, 100 + NUM_SESSIONS)]
    await measure_share_found(sessions, client, 1)
    os.kill(next(iter(two_replicas.replicas().values())), signal.SIGKILL)

    await measure_share_found(
        sessions, client, 1
    )  # sessions of the replica that is gone find nothing
    share = await measure_share_found(sessions, client, 2)

    assert share >= 0.85
    await asyncio.to_thread(two_replicas.wait_for, 2)


async def test_a_killed_replica_chooser_starts_again(
    two_replicas: Cluster, client: httpx.AsyncClient
) -> None:
    [chooser] = two_replicas.replica_choosers()
    os.kill(chooser, signal.SIGKILL)
    statuses = set()
    while two_replicas.replica_choosers() in ([], [chooser]):
        statuses.add((await client.post("/v1/tokenize", json={"prompt": "a"})).status_code)

    assert statuses <= {200, 503}
    assert (
        await measure_share_found(
            [Session(number) for number in range(200, 200 + NUM_SESSIONS)], client, 3
        )
        >= 0.85
    )
