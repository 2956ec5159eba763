"""The paths by which machines ask OVMS how it is: KServe's health checks, and the state of its models."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.errors import ModelNotFound
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
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    async def live(self, request: Request) -> Response:
        return _empty(200)

    async def ready(self, request: Request) -> Response:
        """200 while requests are taken, else 503."""
        return _empty(200 if self._model.engine.state is EngineState.READY else 503)

    async def model_ready(self, request: Request) -> Response:
        """The same for a model by its name."""
        name = request.path_params["name"]
        if name not in self._model.names:
            raise ModelNotFound(f"the model {name[:100]!r} does not exist", param="model")
        return await self.ready(request)

    async def config(self, request: Request) -> Response:
        """By name, in TensorFlow Serving's shape."""
        status = ModelState([_version(self._model.engine.state, self._model.engine.reason)])
        return Response(msgspec.json.encode(dict.fromkeys(self._model.names, status)), media_type="application/json")


def _version(state: EngineState, reason: str) -> VersionState:
    ok = StateReason("OK", "OK")
    match state:
        case EngineState.READY:
            return VersionState("1", "AVAILABLE", ok)
        case EngineState.STARTING | EngineState.RESTARTING:
            return VersionState("1", "LOADING", ok)
        case EngineState.FAILED:
            return VersionState("1", "LOADING", StateReason("FAILED_PRECONDITION", reason))
        case EngineState.DRAINING:
            return VersionState("1", "UNLOADING", ok)
        case EngineState.CLOSED:
            return VersionState("1", "END", ok)


def _empty(status: int) -> Response:
    return Response(status_code=status, media_type="application/json")
