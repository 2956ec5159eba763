"""GET /ping is the health check that SageMaker asks for."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import Operation
from ouzel.generation import EngineState, ServedModel


class ModelStatus(msgspec.Struct):
    status: str


class Ping:
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    async def ping(self, request: Request) -> Response:
        """Answers 200 while requests are taken, else 503, with LMI's word for the state."""
        state = self._model.engine.state
        body = msgspec.json.format(msgspec.json.encode({self._model.names[0]: ModelStatus(_word(state))})) + b"\n"
        return Response(
            body,
            status_code=200 if state is EngineState.READY else 503,
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
        endpoint=lambda services: Ping(services.model).ping,
        answers=(dict[str, ModelStatus],),
        is_probe=True,
    ),
)
