"""Starts the cluster of Ray once for all its tests."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.cluster.probed_models import write_models
from tests.cluster.ray_cluster import Cluster, running_cluster
from tests.postgres import PostgresServer


@pytest.fixture(scope="session")
def cluster(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Starts a cluster with two replicas."""
    models = write_models(tmp_path_factory.mktemp("models"))
    with running_cluster(postgres_server.new_database(), models) as cluster:
        cluster.deploy({"num_replicas": 2}, num_replicas=2)
        cluster.wait_for(2)
        yield cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=cluster.url, timeout=None, limits=limits) as client:
        yield client
