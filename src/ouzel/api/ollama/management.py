"""Answers Ollama's requests to manage models, which this server refuses with advice."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import Operation
from ouzel.api.ollama.model_name import check_name, choose_by_tagged_name
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.generation import ServedModel
from ouzel.wire.decode import decode_body

_OWN_MODELS = (
    "this server has the models that it was started with, or that POST /v1/models/load loaded"
)


class OllamaPullRequest(msgspec.Struct, kw_only=True):
    model: Annotated[str | None, Meta(description="The name of a model.")] = None
    name: Annotated[str | None, Meta(description="The old name of model.")] = None
    stream: Annotated[
        bool | None, Meta(description="A hint: one object is a stream of one line.")
    ] = None


class OllamaStatus(msgspec.Struct):
    status: str


class Pulls:
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    async def pull(self, _: Request, body: bytes) -> OllamaStatus:
        """Answers with one object, which is also a stream of one line."""
        fields = decode_body(body, OllamaPullRequest)
        name = fields.model or fields.name or ""
        try:
            check_name(name, self._model.names)
        except ModelNotFound:
            raise ModelNotFound(
                f"model '{name[:100]}' cannot be pulled: {_OWN_MODELS}", param="model"
            ) from None
        return OllamaStatus("success")


def _make_refusal(message: str) -> Callable[[Request], Awaitable[Response]]:
    """Returns an endpoint that refuses a request without reading its body: blobs have gigabytes."""

    async def refuse(_: Request) -> Response:
        raise InvalidRequest(message)

    return refuse


def _make_refused(
    path: str, summary: str, message: str, method: Literal["post", "delete"] = "post"
) -> Operation:
    return Operation(
        method=method,
        path=path,
        summary=f"Ollama: {summary}; refused.",
        overall=lambda _: _make_refusal(message),
        is_refused=True,
        words="ollama",
    )


OPERATIONS = (
    Operation(
        method="post",
        path="/api/pull",
        summary="Ollama: loads a model from its registry; succeeds for the served model.",
        endpoint=lambda services: services.make_body_endpoint(Pulls(services.model).pull),
        choice=choose_by_tagged_name,
        bodies=(OllamaPullRequest,),
        answers=(OllamaStatus,),
        words="ollama",
    ),
    _make_refused("/api/push", "uploads a model", f"models cannot be pushed: {_OWN_MODELS}"),
    _make_refused("/api/create", "creates a model", f"models cannot be created: {_OWN_MODELS}"),
    _make_refused(
        "/api/copy",
        "copies a model",
        f"models cannot be copied: {_OWN_MODELS} (names: --served-model-name)",
    ),
    _make_refused(
        "/api/delete",
        "deletes a model",
        f"models cannot be deleted: {_OWN_MODELS}",
        method="delete",
    ),
    _make_refused(
        "/api/blobs/{digest}", "uploads a file", f"files cannot be uploaded: {_OWN_MODELS}"
    ),
)
