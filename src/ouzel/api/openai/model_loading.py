"""POST /models/load and /models/unload change what is served. They are for who has the admin key alone."""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.door import cancelled_on_disconnect
from ouzel.api.http.guard import AdminGuard
from ouzel.api.http.send import send_json
from ouzel.api.openai.models import ModelObject, model_object
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import parse_object
from ouzel.wire.validation_errors import shown

LOAD_PATH, UNLOAD_PATH = "/v1/models/load", "/v1/models/unload"
PATHS = frozenset({LOAD_PATH, UNLOAD_PATH})  # that have a key of their own


class UnloadedModel(msgspec.Struct, tag_field="object", tag="model"):
    id: str
    unloaded: bool = True


class ModelChangeEndpoint:
    def __init__(self, catalogue: Catalogue, change: Callable[[bytes], Awaitable[object]]) -> None:
        """`change` takes the body and returns the answer; it is cancelled when the client goes away."""
        self._bodies = catalogue.shared.bodies
        self._guard = AdminGuard(catalogue.shared.config.admin_api_key)
        self._change = change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._guard.check(scope)
        with self._bodies.share() as share:
            body = await self._bodies.read(scope, receive, share)
        async with cancelled_on_disconnect(receive):
            answer = await self._change(body)
        await send_json(msgspec.json.encode(answer), send)


def _loading(catalogue: Catalogue) -> ModelChangeEndpoint:
    async def load(body: bytes) -> ModelObject:
        model = await catalogue.load(parse_object(body))
        return model_object(model.names[0], model)

    return ModelChangeEndpoint(catalogue, load)


def _unloading(catalogue: Catalogue) -> ModelChangeEndpoint:
    async def unload(body: bytes) -> UnloadedModel:
        name = parse_object(body).get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequest(f"must be the name of a model, given {shown(name)}", field="name")
        await catalogue.unload(name)
        return UnloadedModel(name)

    return ModelChangeEndpoint(catalogue, unload)


OPERATIONS = (
    Operation(
        method="post",
        path=LOAD_PATH,
        summary="Loads a model, with options of its own: docs/serving.md.",
        overall=_loading,
        is_documented=False,  # for operators
    ),
    Operation(
        method="post",
        path=UNLOAD_PATH,
        summary="Unloads a model, once its requests are over.",
        overall=_unloading,
        is_documented=False,
    ),
)
