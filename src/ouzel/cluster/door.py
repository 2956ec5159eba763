"""Ray's HAProxy asks a door where each POST goes, before it passes it on: a deployment beside that of the replicas.

Rules
1. HAProxy sends the body, or what fits into its buffer, to `POST /internal/route`, and takes `{"replica_id": …}`. What
   else it gets is a 503 to the client. It knows the names of replicas about as soon as the door does.
2. `Application._with_ingress_request_router` is Ray's own, and changes when Ray wants. Where it is missing, or bodies
   are not sent, requests go where the fewest are open (`missing_for_prefixes`). `tests/cluster` sees what has changed.
3. A door remembers what it gave to whom. Each node that has a proxy has one, and they know nothing of each other.
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
_MAX_BODY_BYTES = 8 * 2**20  # a longer one has no keys
MAX_ONGOING_REQUESTS = 100_000  # of a door or a replica, whose own queue refuses long before
_TOLD_EACH_S = 1.0
_LOOK_S = 0.1
_HARD_STOP_AFTER_S = 120.0  # Ray's own, where the environment says nothing
_CLOSING_S = 20.0
_HEALTH_CHECK_PERIOD_S = 2.0  # without a door no POST is answered


def missing_for_prefixes(environment: Mapping[str, str]) -> str | None:
    """Says what is missing for a door, if anything is."""
    if not hasattr(Application, _HOOK):
        return "this Ray has no hook for it"
    return next((f"{name} is not 1" for name in _NEEDED if environment.get(name) != "1"), None)


class Door:
    """Serve asks it for its app after it was made, in the actor's process."""

    async def __init__(self, replicas: DeploymentHandle) -> None:  # type: ignore[misc]  # Serve awaits it
        self._choice = PrefixChoice()
        replicas._init()
        while not ReplicaList.loads():  # noqa: ASYNC110  # Ray says so in a thread of its own
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


OuzelDoor = serve.deployment(
    name="OuzelDoor",
    max_ongoing_requests=MAX_ONGOING_REQUESTS,
    health_check_period_s=_HEALTH_CHECK_PERIOD_S,
    ray_actor_options={"num_cpus": 0},
    logging_config={"enable_access_log": False},
)(serve.ingress()(Door))


def behind_door(application: Application, environment: Mapping[str, str]) -> Application:
    """Returns the application, whose deployment has `ROUTER_CONFIG`, with a door before it.

    A HAProxy that was replaced still serves the connections that it has, and asks the door that it knows. So a door
    that was replaced stays for as long.
    """
    linger_s = (
        float(environment.get("RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S", _HARD_STOP_AFTER_S))
        + _CLOSING_S
    )
    door = OuzelDoor.options(
        graceful_shutdown_wait_loop_s=linger_s, graceful_shutdown_timeout_s=linger_s + _CLOSING_S
    ).bind(application)
    return getattr(application, _HOOK)(door)


# Ray copies the module that a router's name begins with, and all that is in it. Of the class there must be one only.
ROUTER_CONFIG = RequestRouterConfig(
    request_router_class=f"{__name__}.{ReplicaList.__name__}",
    request_routing_stats_period_s=_TOLD_EACH_S,
)
