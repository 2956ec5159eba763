"""Downloads models with Ollama's path and lines of progress: POST /api/pull.

Rules
1. A served model, and a model on this disk, are a success for everybody. Only a holder of the admin
   key downloads a model, or brings a model on this disk up to date.
2. The stream begins before the hub is asked. Later errors are its last line, as in Ollama.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.model_pulls import PullProgress
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.key_checks import AdminKeyCheck
from ouzel.api.ollama.answer import NDJSON
from ouzel.api.ollama.model_name import find_served_name, strip_defaults
from ouzel.api.openai.admin_endpoint import AdminEndpoint, AdminRequest, ObjectStream
from ouzel.api.openai.model_pulls import MAX_NAME_CHARS
from ouzel.wire.decode import decode_body

PATH = "/api/pull"
_STATUSES = {
    "waiting": "waiting for other downloads",
    "listing": "pulling manifest",
    "verifying": "verifying sha256 digest",
    "writing": "writing manifest",
}


class OllamaModelRequest(msgspec.Struct, kw_only=True):
    model: (
        Annotated[str, Meta(max_length=MAX_NAME_CHARS, description="The name of a model.")] | None
    ) = None
    name: (
        Annotated[str, Meta(max_length=MAX_NAME_CHARS, description="The old name of model.")] | None
    ) = None

    @property
    def given_name(self) -> str:
        return self.model or self.name or ""


class OllamaPullRequest(OllamaModelRequest, kw_only=True):
    stream: Annotated[
        bool | None, Meta(description="Sends lines of progress; false: one object at the end.")
    ] = True


class OllamaStatus(msgspec.Struct, omit_defaults=True):
    status: str
    digest: str | UnsetType = UNSET
    total: int | UnsetType = UNSET
    completed: int | UnsetType = UNSET


_SUCCESS = OllamaStatus("success")


def _make_line(progress: PullProgress) -> OllamaStatus:
    if progress.stage != "file":
        return OllamaStatus(_STATUSES[progress.stage])
    return OllamaStatus(
        f"pulling {progress.digest.rpartition(':')[2][:12]}",
        progress.digest,
        progress.total_bytes,
        progress.done_bytes,
    )


async def _list_lines(changes: ModelChanges, name: str) -> AsyncGenerator[OllamaStatus, None]:
    async with aclosing(changes.pull(name)) as progress:
        async for each in progress:
            yield _make_line(each)
    yield _SUCCESS


async def _succeed() -> AsyncGenerator[OllamaStatus, None]:
    yield _SUCCESS


def _make_pulling(changes: ModelChanges) -> AdminEndpoint:
    catalogue = changes.catalogue
    admin_key = AdminKeyCheck(catalogue.shared.config.admin_api_key)

    async def pull(request: AdminRequest) -> OllamaStatus | ObjectStream:
        fields = decode_body(request.body, OllamaPullRequest)
        given = fields.given_name or catalogue.first.model.names[0]
        name = strip_defaults(given)
        is_served = find_served_name(given, catalogue.names) is not None
        if is_served or (not request.is_admin and await changes.is_present(name)):
            lines = _succeed()
        else:
            admin_key.check(request.scope)
            lines = _list_lines(changes, name)
        if fields.stream is not False:
            return ObjectStream(lines, NDJSON)
        async with aclosing(lines):
            async for _ in lines:
                pass
        return _SUCCESS

    return AdminEndpoint(changes, pull, is_for_all=True)


OPERATIONS = (
    Operation(
        method="post",
        path=PATH,
        summary="Ollama: downloads a model, with the admin key; succeeds for a model that is here.",
        changing=_make_pulling,
        bodies=(OllamaPullRequest,),
        answers=(OllamaStatus,),
        chunks=(OllamaStatus,),
        words="ollama",
    ),
)
