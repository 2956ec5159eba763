"""Serves KServe's health checks and OVMS's state of models, and reads the list of models again."""

import asyncio
import logging

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.on_demand import ModelNotLoaded
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.key_checks import AdminKeyCheck
from ouzel.api.http.send import json_response
from ouzel.api.ovms.errors import ConfigNotReloaded
from ouzel.config import ServerConfig
from ouzel.errors import InvalidRequest, OuzelError
from ouzel.generation import EngineState, ServedModel

RELOAD_PATH = "/v1/config/reload"

logger = logging.getLogger(__name__)


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
        """Answers 200 if any model takes requests, else 503."""
        return _empty(200 if self._catalogue.state is EngineState.READY else 503)

    async def model_ready(self, request: Request) -> Response:
        """Answers 200 if the named model takes requests, else 503."""
        try:
            engine = self._catalogue.find(request.path_params["name"]).model.engine
        except ModelNotLoaded:
            return _empty(200)  # the next request loads it
        return _empty(200 if engine.state is EngineState.READY else 503)

    async def config(self, request: Request) -> Response:
        """Answers with the state of each model by name, in TensorFlow Serving's form.

        A model that the next request loads is available, as in OVMS.
        """
        states = {
            name: _status(each.model) for each in self._catalogue for name in each.model.names
        }
        return json_response(
            states | {name: self._status_away(name) for name in self._catalogue.away}
        )

    def _status_away(self, name: str) -> ModelState:
        on_demand = self._catalogue.on_demand
        managed = None if on_demand is None else on_demand.residents.find(name)
        if managed is None or managed.failure is None:
            return ModelState([VersionState("1", "AVAILABLE", StateReason("OK", "OK"))])
        reason = StateReason("FAILED_PRECONDITION", str(managed.failure))
        return ModelState([VersionState("1", "LOADING", reason)])


class Reload:
    def __init__(self, changes: ModelChanges) -> None:
        self._changes = changes
        self._status = Status(changes.catalogue)
        config = changes.catalogue.shared.config
        self._admin_key = AdminKeyCheck(config.admin_api_key) if needs_admin_key(config) else None

    async def reload(self, request: Request) -> Response:
        """Reads the list of models again, and answers with the state of each model."""
        if self._admin_key is not None:
            self._admin_key.check(request.scope)
        try:
            # The client may disconnect meanwhile.
            await asyncio.shield(asyncio.ensure_future(self._changes.reload()))
        except InvalidRequest:
            raise
        except OuzelError as error:
            logger.error("models not reloaded: %s", error)
            raise ConfigNotReloaded(is_unreadable=isinstance(error.__cause__, OSError)) from error
        return await self._status.config(request)


def needs_admin_key(config: ServerConfig) -> bool:
    """Tells whether a reload needs the admin key. OVMS lets every client reload."""
    return config.profile != "ovms" or bool(config.admin_api_key)


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
        summary="KServe's: the server is running.",
        overall=lambda catalogue: Status(catalogue).live,
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/v2/health/ready",
        summary="KServe's: the server takes requests.",
        overall=lambda catalogue: Status(catalogue).ready,
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/v2/models/{name}/ready",
        has_slashes=True,
        summary="KServe's: the model takes requests.",
        overall=lambda catalogue: Status(catalogue).model_ready,
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/v1/config",
        summary="Returns the state of each model, in OpenVINO Model Server's form.",
        overall=lambda catalogue: Status(catalogue).config,
        answers=(dict[str, ModelState],),
    ),
    Operation(
        method="post",
        path=RELOAD_PATH,
        summary="Reads the list of models again, and returns the state of each model.",
        changing=lambda changes: Reload(changes).reload,
        is_documented=False,  # an interface of operators
    ),
)
