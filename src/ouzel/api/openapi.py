"""The OpenAPI 3.1 document: the wire structs as JSON Schema, and the table of operations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel import __version__, errors
from ouzel.api.chat_answer import ChatCompletion, ChatCompletionChunk
from ouzel.api.chat_request import ChatCompletionRequest
from ouzel.api.completions import Completion, CompletionRequest
from ouzel.api.error_objects import ErrorBody
from ouzel.api.field_defaults import default_in_words
from ouzel.api.health import Health
from ouzel.api.models import ModelList, ModelObject
from ouzel.api.tokenize import DetokenizedText, DetokenizeRequest, TokenizedText, TokenizeRequest

JsonObject = dict[str, object]
StructType = type[msgspec.Struct]

_REF = "#/components/schemas/{name}"
_DESCRIPTION = (
    "Every path below /v1 is also there below /v3 and /v3/v1. A field that this document does not name is ignored, "
    "except those of OpenAI and vLLM that are known and not supported: they are refused with 400. Numbers may also be "
    "given as 1.0 for an integer or as a number in a string. The real limits of n, top_logprobs and lengths are those "
    "of the server's options. The paths that speak as LMI does (/invocations, /ping) are described in docs/lmi.md."
)


@dataclass(frozen=True, kw_only=True)
class Operation:
    method: Literal["get", "post"]
    path: str
    summary: str
    body: StructType | None = None
    answer: StructType | None  # None: text
    chunk: StructType | None = None  # of the stream that `stream` asks for


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/chat/completions",
        summary="Answers a chat.",
        body=ChatCompletionRequest,
        answer=ChatCompletion,
        chunk=ChatCompletionChunk,
    ),
    Operation(
        method="post",
        path="/v1/completions",
        summary="Goes on from a prompt.",
        body=CompletionRequest,
        answer=Completion,
        chunk=Completion,
    ),
    Operation(
        method="post",
        path="/v1/tokenize",
        summary="Token ids of a text or a chat.",
        body=TokenizeRequest,
        answer=TokenizedText,
    ),
    Operation(
        method="post",
        path="/v1/detokenize",
        summary="The text of token ids.",
        body=DetokenizeRequest,
        answer=DetokenizedText,
    ),
    Operation(method="get", path="/v1/models", summary="What is served.", answer=ModelList),
    Operation(method="get", path="/v1/models/{name}", summary="One served model.", answer=ModelObject),
    Operation(method="get", path="/health", summary="200 while requests are taken, else 503.", answer=Health),
    Operation(method="get", path="/metrics", summary="Prometheus metrics.", answer=None),
)


class OpenApi:
    """The endpoint."""

    def __init__(self) -> None:
        self._body = msgspec.json.encode(document())

    async def document(self, request: Request) -> Response:
        return Response(self._body, media_type="application/json")


def document() -> JsonObject:
    answers = [struct for operation in OPERATIONS for struct in (operation.answer, operation.chunk) if struct]
    bodies = _schemas([operation.body for operation in OPERATIONS if operation.body])
    for schema in bodies.values():
        _explain_fields(schema)
    paths: dict[str, JsonObject] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation_object(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ouzel", "version": __version__, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": _schemas([*answers, ErrorBody]) | bodies,
            "responses": _error_responses(),
            "securitySchemes": {"api_key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"api_key": []}],  # where the server has keys, every path but /health needs one
    }


def _schemas(structs: Sequence[StructType]) -> dict[str, JsonObject]:
    _, schemas = msgspec.json.schema_components(structs, schema_hook=_any_value, ref_template=_REF)
    return schemas


def _any_value(kind: type) -> JsonObject:
    if kind is not object:
        raise NotImplementedError
    return {"title": "Any JSON value"}


def _explain_fields(schema: JsonObject) -> None:
    """Description and default at the top of each field; msgspec writes null, which only means "not given"."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for name, field in properties.items():
        if "default" not in field:
            continue  # required
        del field["default"]
        kinds = field.get("anyOf", [])
        inner = [description for kind in kinds if (description := kind.pop("description", None))]
        default = default_in_words(name, is_boolean={"type": "boolean"} in kinds)
        field["description"] = f"{field.get('description') or inner[0]} Default: {default}."


def _operation_object(operation: Operation) -> JsonObject:
    described: JsonObject = {"summary": operation.summary, "responses": _responses(operation)}
    if "{name}" in operation.path:
        described["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
    if operation.body:
        content = {"application/json": {"schema": _ref(operation.body)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _responses(operation: Operation) -> JsonObject:
    if operation.answer is None:
        return {"200": {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    content: JsonObject = {"application/json": {"schema": _ref(operation.answer)}}
    responses: JsonObject = {"200": {"description": "The answer.", "content": content}}
    if operation.chunk is not None:
        content["text/event-stream"] = {"schema": _event(operation.chunk)}
    if operation.path == "/health":
        return responses | {"503": {"description": "Not now.", "content": content}}
    return responses | {status: {"$ref": f"#/components/responses/{status}"} for status in _error_responses()}


def _event(chunk: StructType) -> JsonObject:
    """OpenAPI 3.1 has no keyword for one event of a stream; by custom the schema is that of each event."""
    data = {
        "type": "string",
        "if": {"const": "[DONE]"},  # the last event, unless an error was
        "else": {"contentMediaType": "application/json", "contentSchema": {"anyOf": [_ref(chunk), _ref(ErrorBody)]}},
    }
    return {
        "description": "With stream: each of the server-sent events.",
        "type": "object",
        "required": ["data"],
        "properties": {"data": data},
    }


def _error_responses() -> dict[str, JsonObject]:
    """By status, with what each exception class says of itself."""
    reasons: dict[int, list[str]] = {}
    for error in _with_subclasses(errors.OuzelError):
        if error not in (errors.OuzelError, errors.TryLater, errors.ModelLoadError):  # these three are never answers
            reasons.setdefault(error.status, []).append((error.__doc__ or "").split("\n", 1)[0])
    content = {"application/json": {"schema": _ref(ErrorBody)}}
    return {
        str(status): {"description": " ".join(each), "content": content} for status, each in sorted(reasons.items())
    }


def _with_subclasses(kind: type[errors.OuzelError]) -> Iterator[type[errors.OuzelError]]:
    yield kind
    for subclass in kind.__subclasses__():
        if subclass.__module__ == errors.__name__:
            yield from _with_subclasses(subclass)


def _ref(struct: StructType) -> JsonObject:
    return {"$ref": _REF.format(name=struct.__name__)}
