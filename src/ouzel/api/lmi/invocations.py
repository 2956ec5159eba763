"""POST /invocations, /predictions/{model} and /models/{model}/invoke take any schema: the body says which it is in.

Beside the body come the model's name, custom attributes, the content type, and whether events are wanted.
"""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import parse_qsl

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import name_in
from ouzel.api.endpoint.operation import Operation, StructType
from ouzel.api.endpoint.services import Services
from ouzel.api.http.dialect import Answer, Dialect
from ouzel.api.http.exchange import header
from ouzel.api.http.framing import JSON_LINES
from ouzel.api.lmi.chat import ChatSchema, LmiChatCompletion, LmiChunk
from ouzel.api.lmi.defaults import with_defaults
from ouzel.api.lmi.details import Generated, Line
from ouzel.api.lmi.errors import CHAT_PATH, UnknownSchema
from ouzel.api.lmi.standard import StandardRequest, StandardSchema, UnknownAdapter
from ouzel.api.openai.completions import Completion, CompletionRequest, Completions, decode_completion
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.generation import GenerationRequest, ServedModel
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, log_ignored, parse_object

logger = logging.getLogger(__name__)

BODIES: tuple[StructType, ...] = (StandardRequest, ChatCompletionRequest, CompletionRequest)
ANSWERS: tuple[object, ...] = (Generated, list[Generated], LmiChatCompletion, Completion)
CHUNKS: tuple[StructType, ...] = (Line, LmiChunk, Completion)

_CUSTOM_ATTRIBUTES = b"x-amzn-sagemaker-custom-attributes"  # a=b;c=d
_ACCEPT = b"x-amzn-sagemaker-accept"  # of invocations with a response stream, beside the one that HTTP clients set
_ADAPTER_HEADER = b"x-amzn-sagemaker-adapter-identifier"
_REFUSED = {  # headers and custom attributes that ask for what is not here, with the value that does not
    "x-amzn-sagemaker-session-id": "",
    "x-starting-token": "",
    "x-synchronous": "true",
    "handler": "",
}
_READ_ATTRIBUTES = frozenset({*_REFUSED, "adapter", "model_name", "model_version"})


class Schema(Protocol):
    def prepare(
        self, fields: JsonObject, arrival_s: float, *, takes_events: bool
    ) -> tuple[list[GenerationRequest], Answer]: ...


class CompletionSchema:
    """Frames OpenAI's completions as LMI does."""

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._openai = Completions(model, limits)

    def prepare(
        self, fields: JsonObject, arrival_s: float, *, takes_events: bool
    ) -> tuple[list[GenerationRequest], Answer]:
        body = decode_completion(with_defaults(fields, self._model))
        requests, answer = self._openai.read(body, arrival_s)
        if not takes_events:
            answer.framing = JSON_LINES
        return requests, answer


class Invocations:
    def __init__(
        self,
        model: ServedModel,
        limits: LimitsConfig,
        config: ServerConfig,
        generating: Callable[[Dialect], ASGIApp],
    ) -> None:
        self._model = model
        self._generating = generating
        self._schemas: Mapping[str, Schema] = {  # by the field that tells them apart, first match
            "messages": ChatSchema(model, limits, config),
            "inputs": StandardSchema(model, limits, config),
            "prompt": CompletionSchema(model, limits),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        attributes = _attributes(scope)
        log_ignored({f"custom attribute {name}" for name in attributes.keys() - _READ_ATTRIBUTES})
        _refuse(scope, attributes)
        self._check_model(scope, attributes)
        invocation = Invocation(
            self._schemas,
            content_type=header(scope, b"content-type") or "application/json",
            takes_events="text/event-stream" in (header(scope, _ACCEPT) or header(scope, b"accept") or ""),
        )
        await self._generating(invocation)(scope, receive, send)

    def _check_model(self, scope: Scope, attributes: Mapping[str, str]) -> None:
        """There are no versions; who names an adapter may name the model that it adapts, too."""
        adapter = header(scope, _ADAPTER_HEADER) or _named(scope, attributes, "adapter")
        if adapter and adapter != self._model.adapter:
            raise UnknownAdapter(adapter)
        names = _names_of(self._model) | _spellings(self._model.parent_names)
        for key in ("model_name", "model_version"):
            value = _named(scope, attributes, key)
            if value is not None and (key == "model_version" or value not in names):
                raise ModelNotFound(f"Model or workflow not found: {value[:100]}", param=key)


def by_name(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Chooses by what is named beside the body, else by the body, in which a strange name changes nothing."""
    attributes = _attributes(scope)
    adapter = header(scope, _ADAPTER_HEADER) or _named(scope, attributes, "adapter") or _adapter_in(body)
    for each in catalogue:
        if adapter and each.model.adapter == adapter:
            return each
    name = _named(scope, attributes, "model_name") or name_in(body)
    for each in catalogue:
        if name in _names_of(each.model):
            return each
    catalogue.check_coming(name)
    return catalogue.first


class _Adapters(msgspec.Struct):
    adapters: str | list[str] | None = None


def _adapter_in(body: bytes) -> str:
    """Returns the first that the body names; whether all are the same, the endpoint says."""
    try:
        adapters = msgspec.json.decode(body, type=_Adapters).adapters or ""
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    return adapters if isinstance(adapters, str) else adapters[0]


def _named(scope: Scope, attributes: Mapping[str, str], key: str) -> str | None:
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    path = scope["path_params"]
    return next((place[key] for place in (path, query, attributes) if place.get(key)), header(scope, key.encode()))


def _names_of(model: ServedModel) -> set[str]:
    return _spellings(model.names)


def _spellings(names: tuple[str, ...]) -> set[str]:
    """Returns the names, with their spellings in LMI and as names of SageMaker endpoints."""
    lmis = (re.sub(r"\W", "_", name) for name in names)
    endpoints = (re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-") for name in names)
    return {*names, *lmis, *endpoints}


class Invocation(msgspec.Struct, frozen=True):
    """Implements `Dialect` for one request."""

    schemas: Mapping[str, Schema]
    content_type: str
    takes_events: bool

    def parse(self, body: bytes) -> JsonObject:
        media_type = self.content_type.partition(";")[0].strip().lower()
        if media_type == "text/plain":
            return {"inputs": _text(body)}
        if media_type != "application/json":
            raise InvalidRequest(
                f"must be application/json or text/plain, given {media_type[:60]!r}", field="Content-Type"
            )
        return parse_object(body)

    def prepare(self, fields: JsonObject, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        for field, schema in self.schemas.items():
            if fields.get(field) is not None:
                return schema.prepare(fields, arrival_s, takes_events=self.takes_events)
        raise UnknownSchema


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"a text/plain body must be UTF-8: {error.reason}") from error


def _attributes(scope: Scope) -> dict[str, str]:
    text = header(scope, _CUSTOM_ATTRIBUTES) or ""
    pairs = (pair.partition("=") for pair in text.split(";") if pair.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _refuse(scope: Scope, attributes: Mapping[str, str]) -> None:
    for name, neutral in _REFUSED.items():
        value = attributes.get(name, header(scope, name.encode()))
        if value is not None and value.lower() != neutral:
            raise InvalidRequest(f"is not supported by this server, given {value[:60]!r}", field=name)


def _operation(path: str, *, has_slashes: bool = False) -> Operation:
    return Operation(
        method="post",
        path=path,
        has_slashes=has_slashes,
        summary="LMI: a chat, a prompt, or LMI's own schema. OpenAI's fields need no model here.",
        endpoint=make_invocations,
        choice=by_name,
        bodies=BODIES,
        answers=ANSWERS,
        chunks=CHUNKS,
        words="lmi",
    )


def make_invocations(services: Services) -> Invocations:
    return Invocations(services.model, services.limits, services.config, services.generating)


OPERATIONS = (
    _operation("/invocations"),
    _operation("/predictions/{model_name}"),
    _operation("/predictions/{model_name}/{model_version}"),
    _operation("/models/{model_name}/invoke", has_slashes=True),
    Operation(
        method="post", path=CHAT_PATH, profile="lmi", is_documented=False, endpoint=make_invocations, choice=by_name
    ),
)
