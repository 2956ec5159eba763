"""Ray Serve with two replicas answers like one server.

Clients do not notice that replicas come and go. `just test-ray` runs these tests; Ray is installed
for them (`ray_cluster.py`).
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable

import httpx
import psutil
import pytest

from tests.cluster.probe import find_differences, run_probes
from tests.cluster.ray_cluster import Cluster
from tests.deploy.load import (
    NUM_BACKGROUND,
    NUM_STREAMS,
    background,
    short_requests,
    under_load,
    wait_for_end,
)
from tests.serve.running import serving

pytestmark = pytest.mark.release(
    "Ray Serve: the same answers, scaling, a redeployment, a replica that is killed"
)
MAY_DIFFER = {"headers of a chat", "headers of a stream"}  # Serve's servers add the header `server`


async def test_answers_equal_one_servers(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = str(cluster.options["config"])
    with serving("--config", config, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        one = await run_probes([server.root])
    found = find_differences(one, await run_probes([cluster.url]))
    assert found.keys() <= MAY_DIFFER, found
    assert not [outcome for outcome in one.values() if "cannot be tried" in str(outcome)]


async def test_nobody_notices_fewer_replicas(cluster: Cluster, client: httpx.AsyncClient) -> None:
    before = cluster.replicas()
    streams, responses, others = await act_under_load(
        client, lambda: cluster.deploy({"num_replicas": 2}, num_replicas=1)
    )
    await asyncio.to_thread(cluster.wait_for, 1)

    assert (streams, responses) == ({"length": NUM_STREAMS}, {"incomplete": NUM_BACKGROUND})
    assert set(others) == {200}
    # the replica that stays was not started again
    assert cluster.replicas().items() < before.items()


async def test_nobody_notices_other_options(cluster: Cluster, client: httpx.AsyncClient) -> None:
    cluster.deploy({"num_replicas": 2}, num_replicas=2)
    await asyncio.to_thread(cluster.wait_for, 2)
    before = cluster.replicas()
    arguments = {"num_replicas": 2, "max_choices": 7}
    streams, responses, others = await act_under_load(
        client, lambda: cluster.deploy(arguments, num_replicas=2)
    )
    while before.keys() & cluster.replicas().keys():
        await asyncio.sleep(0.5)
    await asyncio.to_thread(cluster.wait_for, 2)

    assert (streams, responses) == ({"length": NUM_STREAMS}, {"incomplete": NUM_BACKGROUND})
    assert set(others) == {200}


async def test_a_replica_is_killed_and_the_others_answer(
    cluster: Cluster, client: httpx.AsyncClient
) -> None:
    process = psutil.Process(next(iter(cluster.replicas().values())))
    engines = process.children(recursive=True)

    streams, responses = await under_load(client, lambda: os.kill(process.pid, signal.SIGKILL))

    assert streams == {"broken": NUM_STREAMS - streams["length"], "length": streams["length"]}
    assert 0 < streams["broken"] < NUM_STREAMS
    assert set(responses) <= {"failed", "incomplete"}
    assert not psutil.wait_procs(engines, timeout=None)[1]
    await asyncio.to_thread(cluster.wait_for, 2)


async def test_waiting_requests_bring_a_replica(
    cluster: Cluster, client: httpx.AsyncClient
) -> None:
    policy = {
        "policy_function": "ouzel.cluster.scaling:WaitingPolicy",
        "policy_kwargs": {"target_waiting": 2},
    }
    bounds = {"min_replicas": 1, "max_replicas": 2, "upscale_delay_s": 1, "downscale_delay_s": 1}
    bounds |= {"metrics_interval_s": 1, "look_back_period_s": 5}
    before = cluster.replicas()
    arguments = {"max_replicas": 2, "max_num_seqs": 1, "routing": "least_connections"}
    cluster.deploy(arguments, autoscaling_config={**bounds, "policy": policy})
    while before.keys() & cluster.replicas().keys():
        await asyncio.sleep(0.5)
    await asyncio.to_thread(cluster.wait_for, 1)

    responses = [await background(client) for _ in range(12)]
    await asyncio.to_thread(cluster.wait_for, 2)

    for response_id in responses:
        assert await wait_for_end(client, response_id) == "incomplete"


async def act_under_load(
    client: httpx.AsyncClient, act: Callable[[], None]
) -> tuple[Counter[str], Counter[str], Counter[int]]:
    """Acts while requests run; returns how streams, background responses and short requests end."""
    ended = asyncio.Event()
    others = asyncio.create_task(short_requests(client, ended))
    streams, responses = await under_load(client, act)
    ended.set()
    return streams, responses, await others
