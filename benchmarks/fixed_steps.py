"""Serves the app over an engine that steps every 10 ms: by itself, or as a deployment of Ray Serve.

python -m benchmarks.fixed_steps PORT
"""

import socket
import sys
from typing import TYPE_CHECKING, Any  # Any: the arguments that Ray passes

import uvloop

from benchmarks.api import run_uvicorn, served_model
from ouzel.api.app import create_app
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.engine_client import EngineClient, EngineSpec

if TYPE_CHECKING:
    from ouzel.api.http.lifespan import Lifespan

_STEP_S = 0.01


async def fixed_app() -> "Lifespan":
    """Returns the app over an engine in a process of its own."""
    engine = EngineClient(
        EngineSpec(factory="benchmarks.api:create_untimed_engine", options={"step_s": _STEP_S})
    )
    return create_app(served_model(engine, await engine.start()), LimitsConfig(), ServerConfig())


async def serve_alone(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        await run_uvicorn(await fixed_app(), listener)


def build(arguments: dict[str, Any]) -> Any:
    """Builds the deployment for Ray's `import_path`."""
    from ray import serve  # noqa: PLC0415  only Ray's own environment has it

    from ouzel.cluster.arguments import ReplicaSettings  # noqa: PLC0415
    from ouzel.cluster.ray import deployment_options  # noqa: PLC0415

    class Replica:
        async def __init__(self) -> None:  # type: ignore[misc]  # Serve awaits it
            self._app = await fixed_app()

        def __serve_build_asgi_app__(self) -> "Lifespan":
            return self._app

    options = deployment_options(ReplicaSettings(num_replicas=2, num_cpus=0.5), drain_timeout_s=10)
    return serve.deployment(name="Ouzel")(serve.ingress()(Replica)).options(**options).bind()


if __name__ == "__main__":
    uvloop.run(serve_alone(int(sys.argv[1])))
