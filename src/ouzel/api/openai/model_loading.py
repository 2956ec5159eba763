"""Loads and unloads models for holders of the admin key: POST /models/load and /models/unload."""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.key_checks import AdminKeyCheck
from ouzel.api.http.request_admission import cancel_on_disconnect
from ouzel.api.http.send import send_json
from ouzel.api.openai.models import ModelObject, model_object
from ouzel.config.adapters import fault_of_name
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject, log_ignored, parse_object
from ouzel.wire.validation_errors import show_value

LOAD_PATH, UNLOAD_PATH = "/v1/models/load", "/v1/models/unload"
# vLLM's paths
LOAD_ADAPTER_PATH, UNLOAD_ADAPTER_PATH = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
# paths that check the admin key themselves
PATHS = frozenset({LOAD_PATH, UNLOAD_PATH, LOAD_ADAPTER_PATH, UNLOAD_ADAPTER_PATH})


class UnloadedModel(msgspec.Struct, tag_field="object", tag="model"):
    id: str
    unloaded: bool = True


class ModelChangeEndpoint:
    def __init__(self, changes: ModelChanges, change: Callable[[bytes], Awaitable[object]]) -> None:
        """Takes `change`, from a body to an answer; it is cancelled if the client disconnects."""
        self._bodies = changes.catalogue.shared.bodies
        self._admin_key = AdminKeyCheck(changes.catalogue.shared.config.admin_api_key)
        self._change = change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._admin_key.check(scope)
        with self._bodies.share() as share:
            body = await self._bodies.read(scope, receive, share)
        async with cancel_on_disconnect(receive):
            answer = await self._change(body)
        await send_json(msgspec.json.encode(answer), send)


def _make_loading(changes: ModelChanges) -> ModelChangeEndpoint:
    async def load(body: bytes) -> ModelObject:
        model = await changes.load(parse_object(body))
        return model_object(model.names[0], model)

    return ModelChangeEndpoint(changes, load)


def _make_unloading(changes: ModelChanges) -> ModelChangeEndpoint:
    async def unload(body: bytes) -> UnloadedModel:
        name = _text(parse_object(body), "name")
        await changes.unload(name)
        return UnloadedModel(name)

    return ModelChangeEndpoint(changes, unload)


def _make_adapter_loading(changes: ModelChanges) -> ModelChangeEndpoint:
    async def load(body: bytes) -> ModelObject:
        fields = parse_object(body)
        log_ignored(fields.keys() - {"lora_name", "lora_path", "model"})
        name, path = _text(fields, "lora_name"), _text(fields, "lora_path")
        if (fault := fault_of_name(name)) is not None:
            raise InvalidRequest(f"{fault}, given {show_value(name)}", field="lora_name")
        base = _text(fields, "model") if fields.get("model") is not None else None
        return model_object(name, await changes.load_adapter(name, path, base))

    return ModelChangeEndpoint(changes, load)


def _make_adapter_unloading(changes: ModelChanges) -> ModelChangeEndpoint:
    async def unload(body: bytes) -> UnloadedModel:
        fields = parse_object(body)
        log_ignored(fields.keys() - {"lora_name"})
        name = _text(fields, "lora_name")
        await changes.unload_adapter(name)
        return UnloadedModel(name)

    return ModelChangeEndpoint(changes, unload)


def _text(fields: JsonObject, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"must be a text, given {show_value(value)}", field=name)
    return value


OPERATIONS = (
    Operation(
        method="post",
        path=LOAD_ADAPTER_PATH,
        summary="vLLM's: loads an adapter, for the first model or for `model`.",
        changing=_make_adapter_loading,
        is_documented=False,
    ),
    Operation(
        method="post",
        path=UNLOAD_ADAPTER_PATH,
        summary="vLLM's: unloads an adapter after its requests have ended.",
        changing=_make_adapter_unloading,
        is_documented=False,
    ),
    Operation(
        method="post",
        path=LOAD_PATH,
        summary="Loads a model, with options of its own: docs/how-to/serve-several-models.md.",
        changing=_make_loading,
        is_documented=False,  # an interface of operators
    ),
    Operation(
        method="post",
        path=UNLOAD_PATH,
        summary="Unloads a model after its requests have ended.",
        changing=_make_unloading,
        is_documented=False,
    ),
)
