"""Answers GET /ping, SageMaker's health check."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.generation import EngineState


class ModelStatus(msgspec.Struct):
    status: str


class Ping:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def ping(self, request: Request) -> Response:
        """Answers 200 while the server takes requests, else 503, with each model's state."""
        models = [each.model for each in self._catalogue.bases]
        states = {model.names[0]: ModelStatus(_word(model.engine.state)) for model in models}
        body = msgspec.json.format(msgspec.json.encode(states)) + b"\n"
        return Response(
            body,
            status_code=200 if self._catalogue.state is EngineState.READY else 503,
            headers={"cache-control": "no-cache"},
            media_type="application/json",
        )


def _word(state: EngineState) -> str:
    match state:
        case EngineState.READY:
            return "Healthy"
        case EngineState.STARTING | EngineState.RESTARTING:
            return "PENDING"
        case EngineState.FAILED:
            return "FAILED"
        case EngineState.LEAVING | EngineState.DRAINING | EngineState.CLOSED:
            return "Unhealthy"


OPERATIONS = (
    Operation(
        method="get",
        path="/ping",
        summary="LMI's health check.",
        overall=lambda catalogue: Ping(catalogue).ping,
        answers=(dict[str, ModelStatus],),
        is_probe=True,
    ),
)
