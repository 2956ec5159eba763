"""Ray Serve sends requests where their prompts are cached, by a hook that is Ray's own and may change."""

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

from tests.cluster.ray_cluster import ROOT, Cluster, installed, ray_environment

pytestmark = pytest.mark.release("Ray Serve: requests stay where their prompts are cached")
NUM_SESSIONS, NUM_TURNS = 17, 3  # odd: taking turns would part a session from its cache
NOT_BY_PREFIXES = "requests go to the replica with the fewest, not by their prefixes: "


@pytest.fixture(scope="module")
def two_replicas(cluster: Cluster) -> Cluster:
    """The cluster, whatever was deployed before."""
    before = cluster.replicas()
    cluster.deploy({"num_replicas": 2, "max_choices": 9}, num_replicas=2)
    while before.keys() & cluster.replicas().keys():
        time.sleep(0.5)
    cluster.wait_for(2)
    return cluster


class Session:
    """A chat that begins with a prompt of its own, some 800 tokens long."""

    def __init__(self, number: int) -> None:
        self.messages = [
            {
                "role": "user",
                "content": f"{number}: " + f"Tell me of owl {number}, and of its vole. " * 60,
            }
        ]
        self.num_known_tokens = 0  # of the turn before

    async def turn(self, client: httpx.AsyncClient) -> bool | None:
        """Returns whether the turn before was found where this one went; None in the first turn."""
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


async def share_found(sessions: list[Session], client: httpx.AsyncClient, num_turns: int) -> float:
    """Which part of the turns found the turn before in the cache, but for the first of each session."""
    turns = [await session.turn(client) for _ in range(num_turns) for session in sessions]
    found = [turn for turn in turns if turn is not None]
    return sum(found) / max(1, len(found))


def num_requests(processes: Mapping[str, int]) -> list[float]:
    """Of each replica, all that it has answered."""
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


def test_what_the_door_needs_of_ray_is_there() -> None:
    """A canary: it fails where another Ray has changed what is its own."""
    python = str(installed() / "python")
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
    before = num_requests(two_replicas.replicas())
    share = await share_found(
        [Session(number) for number in range(NUM_SESSIONS)], client, NUM_TURNS
    )
    given = [
        after - count
        for after, count in zip(num_requests(two_replicas.replicas()), before, strict=True)
    ]

    assert sum(given) == NUM_SESSIONS * NUM_TURNS
    assert max(given) <= 0.65 * sum(given)
    assert share >= 0.85  # 0.5, where replicas take turns


async def test_sessions_of_a_replica_that_is_killed_go_on(
    two_replicas: Cluster, client: httpx.AsyncClient
) -> None:
    sessions = [Session(number) for number in range(100, 100 + NUM_SESSIONS)]
    await share_found(sessions, client, 1)
    os.kill(next(iter(two_replicas.replicas().values())), signal.SIGKILL)

    await share_found(sessions, client, 1)  # those of the replica that is gone find nothing
    share = await share_found(sessions, client, 2)

    assert share >= 0.85
    await asyncio.to_thread(two_replicas.wait_for, 2)


async def test_a_door_that_is_killed_comes_again(
    two_replicas: Cluster, client: httpx.AsyncClient
) -> None:
    [door] = two_replicas.doors()
    os.kill(door, signal.SIGKILL)
    statuses = set()
    while two_replicas.doors() in ([], [door]):
        statuses.add((await client.post("/v1/tokenize", json={"prompt": "a"})).status_code)

    assert statuses <= {200, 503}
    assert (
        await share_found([Session(number) for number in range(200, 200 + NUM_SESSIONS)], client, 3)
        >= 0.85
    )
