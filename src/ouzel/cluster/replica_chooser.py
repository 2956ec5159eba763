"""Chooses the replica of each POST for Ray's HAProxy, as a deployment of its own.

Rules
1. HAProxy sends the body, or the part that fits into its buffer, to `POST /internal/route`, and
   takes `{"replica_id": …}`. Any other answer is a 503 for the client. HAProxy learns the names of
   replicas about as soon as the chooser does.
2. `Application._with_ingress_request_router` is private to Ray and may change. If it is missing, or
   HAProxy sends no bodies, requests go to the replica with the fewest requests
   (`missing_for_prefixes`). The tests in `tests/cluster` notice changes.
3. A chooser remembers the replica of each request. Each node with a proxy has a chooser of its
   own, and choosers know nothing of each other.
"""

import asyncio
from collections.abc import Mapping

from ray import serve
from ray.serve import Application
from ray.serve.config import RequestRouterConfig
from ray.serve.handle import DeploymentHandle
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ouzel.cluster.prefix_choice import PrefixChoice
from ouzel.cluster.replica_list import ReplicaList

_HOOK = "_with_ingress_request_router"
_NEEDED = ("RAY_SERVE_ENABLE_HA_PROXY", "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY")
_MAX_BODY_BYTES = 8 * 2**20  # a longer body has no cache keys
MAX_ONGOING_REQUESTS = 100_000  # Ray's limit; the queue of a replica refuses long before
_REPORT_INTERVAL_S = 1.0
_LOOK_S = 0.1
_HARD_STOP_AFTER_S = 120.0  # Ray's default
_CLOSING_S = 20.0
_HEALTH_CHECK_PERIOD_S = 2.0  # short, since no POST is answered without a chooser


def missing_for_prefixes(environment: Mapping[str, str]) -> str | None:
    """Returns the reason why a chooser cannot work with this Ray, or None."""
    if not hasattr(Application, _HOOK):
        return f"this version of Ray has no Application.{_HOOK}"
    return next((f"{name} is not 1" for name in _NEEDED if environment.get(name) != "1"), None)


class ReplicaChooser:
    """An ingress deployment that tells HAProxy the replica for each request.

    Ray Serve gets the app after `__init__`, in the actor's process.
    """

    async def __init__(  # type: ignore[misc]  # Serve awaits it
        self, replicas: DeploymentHandle
    ) -> None:
        self._choice = PrefixChoice()
        replicas._init()
        while not ReplicaList.loads():  # noqa: ASYNC110  a thread of Ray updates it
            await asyncio.sleep(_LOOK_S)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return Starlette(routes=[Route("/internal/route", self._route, methods=["POST"])])

    async def _route(self, request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > _MAX_BODY_BYTES:
                break
        if not (loads := ReplicaList.loads()):
            return Response(status_code=503)
        return JSONResponse({"replica_id": self._choice.replica_for(bytes(body), loads)})


OuzelReplicaChooser = serve.deployment(
    name="OuzelReplicaChooser",
    max_ongoing_requests=MAX_ONGOING_REQUESTS,
    health_check_period_s=_HEALTH_CHECK_PERIOD_S,
    ray_actor_options={"num_cpus": 0},
    logging_config={"enable_access_log": False},
)(serve.ingress()(ReplicaChooser))


def put_behind_chooser(application: Application, environment: Mapping[str, str]) -> Application:
    """Puts a chooser before an application whose deployment has `ROUTER_CONFIG`.

    A HAProxy that was replaced still serves its connections and asks the chooser that it knows. So
    a chooser that was replaced stays for the same time.
    """
    linger_s = (
        float(environment.get("RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S", _HARD_STOP_AFTER_S))
        + _CLOSING_S
    )
    chooser = OuzelReplicaChooser.options(
        graceful_shutdown_wait_loop_s=linger_s, graceful_shutdown_timeout_s=linger_s + _CLOSING_S
    ).bind(application)
    return getattr(application, _HOOK)(chooser)


# Ray copies the module at the beginning of the class's name, with all objects in it. `ReplicaList`
# has a module of its own, because its class, which keeps the latest instance, must exist only once.
ROUTER_CONFIG = RequestRouterConfig(
    request_router_class=f"{__name__}.{ReplicaList.__name__}",
    request_routing_stats_period_s=_REPORT_INTERVAL_S,
)
