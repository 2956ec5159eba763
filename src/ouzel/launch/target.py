"""Asks the server for its models, and chooses the model of the client."""

import asyncio
from http import HTTPStatus

import msgspec

from ouzel.client.base import UNREADABLE, Answer, ApiFailure, read_failure
from ouzel.launch.client import LaunchError, Target

# The query makes the server add Codex's catalogue.
_PATH = "/v1/models?client_version=0"
_TIMEOUT_S = 60.0


class _Model(msgspec.Struct):
    id: str
    max_model_len: int | None = None
    context_length: int | None = None
    capabilities: list[str] | None = None

    @property
    def can_chat(self) -> bool:
        return self.capabilities is None or "chat" in self.capabilities


class _Models(msgspec.Struct):
    data: list[_Model]
    models: msgspec.Raw = msgspec.Raw()  # Codex's catalogue


def find_target(url: str, *, model: str, api_key: str) -> Target:
    """Returns the model `model` of the server, or its first chat model if `model` is empty.

    Raises ApiFailure if the server cannot be reached or refuses the request, and LaunchError if it
    has no such model.
    """
    root, answer = asyncio.run(_ask(url, api_key))
    if answer.status != HTTPStatus.OK:
        raise read_failure(answer)
    try:
        listed = msgspec.json.decode(answer.body, type=_Models)
    except UNREADABLE as error:
        raise LaunchError(f"{root}/v1/models answered no list of models: {error}") from error
    chosen = _choose(listed.data, model, root)
    context = chosen.max_model_len or chosen.context_length
    if context is None:
        raise LaunchError(
            f"{root} does not tell the context length of {chosen.id}; its entry in /v1/models "
            "must have max_model_len or context_length"
        )
    return Target(root, chosen.id, context, api_key, _read_catalogue(listed.models))


async def _ask(url: str, api_key: str) -> tuple[str, Answer]:
    from ouzel.client.http_client import HttpClient, read_address  # noqa: PLC0415  slow to import

    client = HttpClient(url, api_key=api_key)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return read_address(url).root, await client.ask("GET", _PATH)
    except TimeoutError:
        raise LaunchError(f"--url {url}: no answer within {_TIMEOUT_S:g} s") from None
    finally:
        await client.close()


def is_answered(failure: ApiFailure) -> bool:
    """Tells whether a server answered; it refused the request."""
    return failure.http_status != 0


def _choose(models: list[_Model], name: str, root: str) -> _Model:
    if name:
        named = [model for model in models if model.id == name]
        if not named:
            known = ", ".join(model.id for model in models) or "none"
            raise LaunchError(f"--model: must be a model of {root}, given {name!r}; it has {known}")
        models = named
    for model in models:
        if model.can_chat:
            return model
    raise LaunchError(f"{name} of {root} is no chat model" if name else f"{root} has no chat model")


def _read_catalogue(models: msgspec.Raw) -> str:
    if not bytes(models):
        return ""
    whole = msgspec.json.encode({"models": models})
    return msgspec.json.format(whole, indent=2).decode() + "\n"
