"""Answers /invocations, /predictions/{model} and /models/{model}/invoke in several schemas.

The fields of the body decide which schema applies. The model's name, custom attributes, the content
type and the accepted type are in the path, the query or headers.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.operation import Operation, StructType
from ouzel.api.endpoint.services import Services
from ouzel.api.http.dialect import Answer
from ouzel.api.http.exchange import get_header
from ouzel.api.http.framing import JSON_LINES
from ouzel.api.lmi.adapters import take_adapters
from ouzel.api.lmi.chat import ChatSchema, LmiChatCompletion, LmiChunk
from ouzel.api.lmi.choice import adapter_beside_body, check_model, choose_by_name, read_attributes
from ouzel.api.lmi.content import read_content
from ouzel.api.lmi.defaults import fill_defaults
from ouzel.api.lmi.details import Generated, Line
from ouzel.api.lmi.errors import CHAT_PATH, UnknownSchema
from ouzel.api.lmi.standard import StandardRequest, StandardSchema
from ouzel.api.lmi.vector_request import VectorRequest
from ouzel.api.lmi.vectors import Numbers, VectorInvocations
from ouzel.api.openai.completions import (
    Completion,
    CompletionRequest,
    Completions,
    decode_completion,
)
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationRequest, ServedModel
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, log_ignored
from ouzel.wire.validation_errors import show_value

BODIES: tuple[StructType, ...] = (
    StandardRequest,
    ChatCompletionRequest,
    CompletionRequest,
    VectorRequest,
)
ANSWERS: tuple[object, ...] = (
    Generated,
    list[Generated],
    LmiChatCompletion,
    Completion,
    Numbers,
    list[Numbers],
)
CHUNKS: tuple[StructType, ...] = (Line, LmiChunk, Completion)

# header of invocations with a response stream, beside the header that HTTP clients set
_ACCEPT = b"x-amzn-sagemaker-accept"
# headers and custom attributes for missing features, with their neutral values
_REFUSED = {
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
    """Reads OpenAI's completions, and frames their answers as LMI does."""

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._openai = Completions(model, limits)

    def prepare(
        self, fields: JsonObject, arrival_s: float, *, takes_events: bool
    ) -> tuple[list[GenerationRequest], Answer]:
        body = decode_completion(fill_defaults(fields, self._model))
        requests, answer = self._openai.read(body, arrival_s)
        if not takes_events:
            answer.framing = JSON_LINES
        return requests, answer


class Invocations:
    def __init__(self, services: Services) -> None:
        model, limits, config = services.model, services.limits, services.config
        self._services = services
        self._model = model
        self._vectors = None if model.sentences is None else VectorInvocations(services)
        # schemas by the field that tells them apart; the first match counts
        self._schemas: Mapping[str, Schema] = {
            "messages": ChatSchema(model, limits, config, services.chats),
            "inputs": StandardSchema(model, limits, config),
            "prompt": CompletionSchema(model, limits),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        attributes = read_attributes(scope)
        log_ignored({f"custom attribute {name}" for name in attributes.keys() - _READ_ATTRIBUTES})
        _refuse(scope, attributes)
        check_model(self._model, scope, attributes)
        content_type = get_header(scope, b"content-type") or "application/json"
        adapter = adapter_beside_body(scope, attributes)
        if self._vectors is not None:
            answer = partial(
                self._vectors.answer, content_type=content_type, adapter_beside_body=adapter
            )
            await self._services.make_body_endpoint(answer)(scope, receive, send)
            return
        invocation = Invocation(
            self._schemas,
            self._model,
            content_type=content_type,
            takes_events="text/event-stream"
            in (get_header(scope, _ACCEPT) or get_header(scope, b"accept") or ""),
            adapter_beside_body=adapter,
        )
        await self._services.make_generating(invocation)(scope, receive, send)


class Invocation(msgspec.Struct, frozen=True):
    """Reads one invocation, as a dialect of its own."""

    schemas: Mapping[str, Schema]
    model: ServedModel
    content_type: str
    takes_events: bool
    adapter_beside_body: str

    def parse(self, body: bytes) -> JsonObject:
        fields = read_content(self.content_type, body)
        if not isinstance(fields, dict):
            raise InvalidRequest(f"the body must be a JSON object, given {show_value(fields)}")
        return fields

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        for field, schema in self.schemas.items():
            if fields.get(field) is not None:
                own_fields = dict(fields)
                adapters = self._take_adapters(own_fields, field)
                requests, answer = schema.prepare(
                    own_fields, arrival_s, takes_events=self.takes_events
                )
                return _set_adapters(requests, adapters), answer
        raise UnknownSchema

    def _take_adapters(self, fields: JsonObject, field: str) -> list[str]:
        """Removes the adapters from the fields, and returns the name of one for each input."""
        inputs = fields["inputs"] if field == "inputs" else None
        num_inputs = len(inputs) if isinstance(inputs, list) else 1
        return take_adapters(
            fields, self.model, num_inputs=num_inputs, beside_body=self.adapter_beside_body
        )


def _set_adapters(
    requests: Sequence[GenerationRequest], adapters: Sequence[str]
) -> list[GenerationRequest]:
    """Sets the adapters. `adapters` has a name for each request, or one for all of them."""
    names = adapters if len(adapters) == len(requests) else [adapters[0]] * len(requests)
    return [replace(request, adapter=name) for request, name in zip(requests, names, strict=True)]


def _refuse(scope: Scope, attributes: Mapping[str, str]) -> None:
    for name, neutral in _REFUSED.items():
        value = attributes.get(name, get_header(scope, name.encode()))
        if value is not None and value.lower() != neutral:
            raise InvalidRequest(
                f"is not supported by this server, given {value[:60]!r}", field=name
            )


def _operation(path: str, *, has_slashes: bool = False) -> Operation:
    return Operation(
        method="post",
        path=path,
        has_slashes=has_slashes,
        summary="LMI: a chat, a prompt, or LMI's own schema. Unlike at OpenAI, the body needs no "
        "model.",
        endpoint=make_invocations,
        choice=choose_by_name,
        bodies=BODIES,
        answers=ANSWERS,
        chunks=CHUNKS,
        words="lmi",
    )


def make_invocations(services: Services) -> Invocations:
    return Invocations(services)


OPERATIONS = (
    _operation("/invocations"),
    _operation("/predictions/{model_name}"),
    _operation("/predictions/{model_name}/{model_version}"),
    _operation("/models/{model_name}/invoke", has_slashes=True),
    Operation(
        method="post",
        path=CHAT_PATH,
        profile="lmi",
        is_documented=False,
        endpoint=make_invocations,
        choice=choose_by_name,
    ),
)
