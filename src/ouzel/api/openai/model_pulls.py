"""Downloads and deletes models for holders of the admin key.

The paths are POST /v1/models/pull and DELETE /v1/models/{name}.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.model_pulls import PullProgress
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.framing import SSE
from ouzel.api.openai.admin_endpoint import AdminEndpoint, AdminRequest, ObjectStream
from ouzel.wire.decode import decode_body

MODELS_PATH = "/v1/models/"
PATH = f"{MODELS_PATH}pull"
MAX_NAME_CHARS = 500

Status = Literal["waiting", "listing", "downloading", "verifying", "writing", "done"]


class ModelPullRequest(msgspec.Struct, kw_only=True):
    model: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_NAME_CHARS,
            description="`owner/name` of the hub; of GGUF `owner/name:Q4_K_M`, or `:FILE.gguf`.",
        ),
    ]
    stream: Annotated[
        bool | None, Meta(description="Sends events; false: one object at the end.")
    ] = True


class ModelPullEvent(msgspec.Struct, tag_field="object", tag="model.pull"):
    """The state of a download. Files that were on the disk before do not count."""

    model: str
    status: Status
    files_done: int = 0
    files_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0


class DeletedModel(msgspec.Struct, tag_field="object", tag="model"):
    id: str
    freed_bytes: int
    deleted: bool = True


class _Totals:
    """Sums the progress of the files."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._files: dict[str, PullProgress] = {}

    def add(self, progress: PullProgress) -> ModelPullEvent:
        if progress.stage != "file":
            return self.make_event(progress.stage)
        self._files[progress.digest] = progress
        return self.make_event("downloading")

    def make_event(self, status: Status) -> ModelPullEvent:
        files = self._files.values()
        return ModelPullEvent(
            self._name,
            status,
            files_done=sum(each.done_bytes >= each.total_bytes for each in files),
            files_total=len(files),
            bytes_done=sum(each.done_bytes for each in files),
            bytes_total=sum(each.total_bytes for each in files),
        )


async def _list_events(changes: ModelChanges, name: str) -> AsyncGenerator[ModelPullEvent, None]:
    totals = _Totals(name)
    async with aclosing(changes.pull(name)) as progress:
        async for each in progress:
            yield totals.add(each)
    yield totals.make_event("done")


def _make_pulling(changes: ModelChanges) -> AdminEndpoint:
    async def pull(request: AdminRequest) -> ModelPullEvent | ObjectStream:
        fields = decode_body(request.body, ModelPullRequest)
        events = _list_events(changes, fields.model)
        if fields.stream is not False:
            return ObjectStream(events, SSE)
        async with aclosing(events):
            async for event in events:
                last = event
        return last

    return AdminEndpoint(changes, pull)


def _make_deleting(changes: ModelChanges) -> AdminEndpoint:
    async def delete(request: AdminRequest) -> DeletedModel:
        name = request.scope["path_params"]["name"]
        return DeletedModel(name, await changes.delete(name))

    return AdminEndpoint(changes, delete)


OPERATIONS = (
    Operation(
        method="post",
        path=PATH,
        summary="Downloads a model onto the server's disk; needs the admin key.",
        changing=_make_pulling,
        bodies=(ModelPullRequest,),
        answers=(ModelPullEvent,),
        chunks=(ModelPullEvent,),
    ),
    Operation(
        method="delete",
        path="/v1/models/{name}",
        has_slashes=True,
        summary="Deletes the files of a model that is not loaded; needs the admin key.",
        changing=_make_deleting,
        answers=(DeletedModel,),
    ),
)
