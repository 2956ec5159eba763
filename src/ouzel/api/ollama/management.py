"""What Ollama manages and this server does not: each is answered with what to do instead."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import Operation
from ouzel.api.ollama.model_name import by_tagged_name, check_name
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.generation import ServedModel
from ouzel.wire.decode import decode_body

_OWN_MODELS = (
    "this server has the models that it was started with, or that POST /v1/models/load has loaded"
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
        """Answers in one object, which is a stream of one line as well."""
        asked = decode_body(body, OllamaPullRequest)
        name = asked.model or asked.name or ""
        try:
            check_name(name, self._model.names)
        except ModelNotFound:
            raise ModelNotFound(
                f"model '{name[:100]}' cannot be pulled: {_OWN_MODELS}", param="model"
            ) from None
        return OllamaStatus("success")


def _refusal(message: str) -> Callable[[Request], Awaitable[Response]]:
    """Returns an endpoint that leaves the body unread: a blob has gigabytes."""

    async def refuse(_: Request) -> Response:
        raise InvalidRequest(message)

    return refuse


def _refused(
    path: str, summary: str, message: str, method: Literal["post", "delete"] = "post"
) -> Operation:
    return Operation(
        method=method,
        path=path,
        summary=f"Ollama: {summary}; refused.",
        overall=lambda _: _refusal(message),
        is_refused=True,
        words="ollama",
    )


OPERATIONS = (
    Operation(
        method="post",
        path="/api/pull",
        summary="Ollama: loads a model from its registry; the served model is there.",
        endpoint=lambda services: services.make_body_endpoint(Pulls(services.model).pull),
        choice=by_tagged_name,
        bodies=(OllamaPullRequest,),
        answers=(OllamaStatus,),
        words="ollama",
    ),
    _refused("/api/push", "uploads a model", f"models cannot be pushed: {_OWN_MODELS}"),
    _refused("/api/create", "creates a model", f"models cannot be created: {_OWN_MODELS}"),
    _refused(
        "/api/copy",
        "copies a model",
        f"models cannot be copied: {_OWN_MODELS} (names: --served-model-name)",
    ),
    _refused(
        "/api/delete",
        "deletes a model",
        f"models cannot be deleted: {_OWN_MODELS}",
        method="delete",
    ),
    _refused("/api/blobs/{digest}", "uploads a file", f"files cannot be uploaded: {_OWN_MODELS}"),
)
