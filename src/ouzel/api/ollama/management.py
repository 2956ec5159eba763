"""Refuses Ollama's requests to make, copy and upload models, with advice."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import Operation
from ouzel.errors import InvalidRequest

_OWN_MODELS = "this server has the models that it was started with, loaded or pulled"


def _make_refusal(message: str) -> Callable[[Request], Awaitable[Response]]:
    """Returns an endpoint that refuses a request without reading its body: blobs have gigabytes."""

    async def refuse(_: Request) -> Response:
        raise InvalidRequest(message)

    return refuse


def _make_refused(path: str, summary: str, message: str) -> Operation:
    return Operation(
        method="post",
        path=path,
        summary=f"Ollama: {summary}; refused.",
        overall=lambda _: _make_refusal(message),
        is_refused=True,
        words="ollama",
    )


OPERATIONS = (
    _make_refused("/api/push", "uploads a model", f"models cannot be pushed: {_OWN_MODELS}"),
    _make_refused("/api/create", "creates a model", f"models cannot be created: {_OWN_MODELS}"),
    _make_refused(
        "/api/copy",
        "copies a model",
        f"models cannot be copied: {_OWN_MODELS} (names: --served-model-name)",
    ),
    _make_refused(
        "/api/blobs/{digest}", "uploads a file", f"files cannot be uploaded: {_OWN_MODELS}"
    ),
)
