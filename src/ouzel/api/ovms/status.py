"""Machines ask by these paths how OVMS is: they are KServe's health checks, and the state of its models."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.send import json_response
from ouzel.generation import EngineState, ServedModel


class StateReason(msgspec.Struct):
    error_code: str
    error_message: str


class VersionState(msgspec.Struct):
    version: str
    state: str
    status: StateReason


class ModelState(msgspec.Struct):
    model_version_status: list[VersionState]


class Status:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def live(self, request: Request) -> Response:
        return _empty(200)

    async def ready(self, request: Request) -> Response:
        """Answers 200 while requests are taken, for whichever model, else 503."""
        return _empty(200 if self._catalogue.state is EngineState.READY else 503)

    async def model_ready(self, request: Request) -> Response:
        """Answers the same for a model by its name."""
        engine = self._catalogue.find(request.path_params["name"]).model.engine
        return _empty(200 if engine.state is EngineState.READY else 503)

    async def config(self, request: Request) -> Response:
        """Answers by name, in TensorFlow Serving's shape."""
        return json_response({name: _status(each.model) for each in self._catalogue for name in each.model.names})


def _status(model: ServedModel) -> ModelState:
    return ModelState([_version(model.engine.state, model.engine.reason)])


def _version(state: EngineState, reason: str) -> VersionState:
    ok = StateReason("OK", "OK")
    match state:
        case EngineState.READY:
            return VersionState("1", "AVAILABLE", ok)
        case EngineState.STARTING | EngineState.RESTARTING:
            return VersionState("1", "LOADING", ok)
        case EngineState.FAILED:
            return VersionState("1", "LOADING", StateReason("FAILED_PRECONDITION", reason))
        case EngineState.LEAVING | EngineState.DRAINING:
            return VersionState("1", "UNLOADING", ok)
        case EngineState.CLOSED:
            return VersionState("1", "END", ok)


def _empty(status: int) -> Response:
    return Response(status_code=status, media_type="application/json")


OPERATIONS = (
    Operation(
        method="get",
        path="/v2/health/live",
        summary="KServe's: the server is there.",
        overall=lambda catalogue: Status(catalogue).live,
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/v2/health/ready",
        summary="KServe's: requests are taken.",
        overall=lambda catalogue: Status(catalogue).ready,
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/v2/models/{name}/ready",
        has_slashes=True,
        summary="KServe's, of a model.",
        overall=lambda catalogue: Status(catalogue).model_ready,
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/v1/config",
        summary="The state of each model, as OpenVINO Model Server tells it.",
        overall=lambda catalogue: Status(catalogue).config,
        answers=(dict[str, ModelState],),
    ),
)
