"""Serves the API on replicas of Ray Serve 2.60.

    serve run ouzel.cluster.ray:build model=MODEL num_replicas=2

Rules
1. A replica is a server of `ouzel serve` without a listener: Serve's own servers call its app.
2. Serve counts open requests, and background responses are none. But before it kills the actor of
   a replica it runs the end of the app's lifespan, which waits for them
   (`api/http/lifespan.py`). So Serve must be told to wait long enough.
3. Requests queue in the replica and are refused there, so Serve's own limit must be larger.
4. Secrets and files belong to the nodes: each replica reads all options again on its node.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any  # Any: Ray's objects, whose types are not checked here

import ray
from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy
from starlette.types import ASGIApp

from ouzel.cluster.arguments import ReplicaSettings, check_store, read_arguments, replica_options
from ouzel.cluster.replica_chooser import (
    MAX_ONGOING_REQUESTS,
    ROUTER_CONFIG,
    missing_for_prefixes,
    put_behind_chooser,
)
from ouzel.cluster.replica_load import report_load
from ouzel.cluster.request_ids import OneRequestId
from ouzel.cluster.scaling import WaitingPolicy
from ouzel.errors import OuzelError
from ouzel.generation import EngineState
from ouzel.serve.command import apply_logging
from ouzel.serve.model_host import ModelHost
from ouzel.serve.open_models import open_models
from ouzel.serve.serve import open_frontend_for, settle_memory
from ouzel.serve.traces import open_traces

if TYPE_CHECKING:
    from ouzel.serve.http_frontend import HttpFrontend

logger = logging.getLogger(__name__)

_DEREGISTRATION_S = 30.0  # the least time that a replica stays reachable behind HAProxy
_CLOSING_S = 20.0  # time to close engine, store and traces
_HEALTH_CHECK_PERIOD_S = 5.0
_BROKEN = (EngineState.FAILED, EngineState.CLOSED)


class Replica:
    """Runs a server; Ray Serve takes its app after `__init__`, in the actor's process."""

    async def __init__(  # type: ignore[misc]  # Serve awaits it
        self, values: Mapping[str, Any], num_replicas: int, drain_timeout_s: float
    ) -> None:
        num_cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 0.0)
        world_size = serve.get_replica_context().world_size
        self._host: ModelHost | None = None
        self._front: HttpFrontend | None = None
        try:
            options = apply_logging(
                replica_options(
                    values, os.environ, num_cpus=num_cpus, drain_timeout_s=drain_timeout_s
                )
            )
            check_store(options.store, max(num_replicas, world_size))
            self._host = ModelHost(options)
            traces = open_traces(options.observability.otlp_traces_endpoint)
            models = await asyncio.to_thread(open_models, options)
            self._front = await open_frontend_for(options, models, self._host, traces)
        except OuzelError as error:
            await self._close()
            # Ray can pass on only errors that it can make again in another process.
            raise RuntimeError(str(error)) from error
        settle_memory()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        assert self._front is not None
        return OneRequestId(self._front.app)

    async def check_health(self) -> None:
        """Raises RuntimeError if Ray must replace the replica; a replica restarts a dead engine."""
        assert self._front is not None
        catalogue = self._front.catalogue
        if catalogue.state in _BROKEN:
            raise RuntimeError(catalogue.reason)

    async def record_autoscaling_stats(self) -> dict[str, float]:
        return self._load()

    async def record_routing_stats(self) -> dict[str, float]:
        return self._load()

    async def __del__(self) -> None:
        """Closes the replica; Serve awaits it after the end of the app's lifespan."""
        await self._close()

    def _load(self) -> dict[str, float]:
        assert self._front is not None
        return report_load(served.model for served in self._front.catalogue)

    async def _close(self) -> None:
        host, self._host = self._host, None
        front, self._front = self._front, None
        if host is not None:
            await host.close()
        if front is not None:
            await front.close()


Ouzel = serve.deployment(name="Ouzel")(serve.ingress()(Replica))


def build(arguments: dict[str, Any]) -> Any:
    """Builds the application for `serve run` and `import_path`. Raises InvalidOption."""
    settings, values, options = read_arguments(arguments)
    drain_timeout_s = options.limits.drain_timeout_s
    deployment = deployment_options(settings, drain_timeout_s)
    by_prefixes = settings.routing == "prefix" and settings.most_replicas > 1
    if by_prefixes and (missing := missing_for_prefixes(os.environ)):
        logger.warning(
            "requests go to the replica with the fewest, not by their prefixes: %s", missing
        )
        by_prefixes = False
    if by_prefixes:
        deployment["request_router_config"] = ROUTER_CONFIG
    application = Ouzel.options(**deployment).bind(values, settings.most_replicas, drain_timeout_s)
    return put_behind_chooser(application, os.environ) if by_prefixes else application


def deployment_options(settings: ReplicaSettings, drain_timeout_s: float) -> dict[str, Any]:
    """Returns the deployment options of Ray Serve; a file of `serve deploy` may override them."""
    options: dict[str, Any] = {
        "max_ongoing_requests": MAX_ONGOING_REQUESTS,
        # Requests may take the drain's time, and then background responses again.
        "graceful_shutdown_timeout_s": _DEREGISTRATION_S + 2 * drain_timeout_s + _CLOSING_S,
        "graceful_shutdown_wait_loop_s": 0.5,
        "health_check_period_s": _HEALTH_CHECK_PERIOD_S,
        "ray_actor_options": {"num_cpus": settings.num_cpus},
    }
    if settings.max_replicas is None:
        return options | {"num_replicas": settings.num_replicas}
    targets = {"target_waiting": settings.target_waiting, "target_running": settings.target_running}
    policy = AutoscalingPolicy(policy_function=WaitingPolicy, policy_kwargs=targets)
    return options | {
        "autoscaling_config": AutoscalingConfig(
            min_replicas=settings.min_replicas, max_replicas=settings.max_replicas, policy=policy
        )
    }
