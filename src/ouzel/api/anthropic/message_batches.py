"""Creates, finds, lists, cancels and deletes batches of messages, and streams their results."""

import re
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ouzel.api.batches.room import require_room
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import read_model_name
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.batches.errors import BatchEnded, BatchNotFound
from ouzel.batches.limits import MAX_MESSAGE_REQUESTS, MESSAGES, WINDOW_S
from ouzel.batches.results import write_anthropic_line
from ouzel.errors import InvalidRequest
from ouzel.store.base import Store
from ouzel.store.batches.records import (
    BatchPageRequest,
    BatchStatus,
    NewBatch,
    NewLine,
    StoredBatch,
)
from ouzel.wire.decode import decode_body
from ouzel.wire.validation_errors import show_value

_DEFAULT_LIMIT, _HIGHEST_LIMIT = 20, 1000
_PAGE = 200  # results that are in memory at once
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
BatchState = Literal["in_progress", "canceling", "ended"]


class MessageBatchRequest(msgspec.Struct, kw_only=True):
    custom_id: Annotated[
        str, Meta(description="A name of 1 to 64 letters, digits, _ and -; unique in the batch.")
    ]
    params: Annotated[dict[str, object], Meta(description="The body of a request to /v1/messages.")]


class CreateMessageBatchRequest(msgspec.Struct, kw_only=True):
    requests: Annotated[
        list[MessageBatchRequest],
        Meta(min_length=1, max_length=MAX_MESSAGE_REQUESTS, description="The requests."),
    ]


class MessageBatchCounts(msgspec.Struct, frozen=True, kw_only=True):
    processing: int
    succeeded: int
    errored: int
    canceled: int
    expired: int


class MessageBatch(msgspec.Struct, frozen=True, kw_only=True, tag="message_batch"):
    id: str
    processing_status: BatchState
    request_counts: MessageBatchCounts
    created_at: str
    expires_at: str
    ended_at: str | None
    cancel_initiated_at: str | None
    archived_at: str | None
    results_url: str | None


class MessageBatchPage(msgspec.Struct, frozen=True):
    data: list[MessageBatch]
    has_more: bool
    first_id: str | None
    last_id: str | None


class DeletedMessageBatch(msgspec.Struct, frozen=True, tag="message_batch_deleted"):
    id: str


class MessageBatches:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._shared = catalogue.shared

    async def create(self, request: Request) -> Response:
        bodies = self._shared.bodies
        with bodies.share() as share:
            body = await bodies.read(request.scope, request.receive, share)
            fields = decode_body(body, CreateMessageBatchRequest)
            store = self._shared.store
            if store is None:
                raise InvalidRequest("a batch cannot be created: this server stores nothing")
            key_id = get_exchange(request.scope).key_id
            await require_room(store, key_id, self._shared.limits)
            lines, model = self._read_lines(fields.requests)
            new = NewBatch(
                id=f"msgbatch_{secrets.token_hex(16)}",
                key_id=key_id,
                dialect="anthropic",
                endpoint=MESSAGES,
                input_file_id=None,
                window_s=WINDOW_S,
                metadata=None,
                output_expires_after_s=None,
            )
            stored = await store.batches.add(new, lines, model=model)
        return json_response(_describe(stored, request))

    def _read_lines(self, requests: list[MessageBatchRequest]) -> tuple[list[NewLine], str]:
        """Returns the lines of a batch and the first name of their model."""
        lines: list[NewLine] = []
        custom_ids: set[str] = set()
        models: dict[str, str] = {}
        for index, each in enumerate(requests):
            field = f"requests[{index}].custom_id"
            if not _CUSTOM_ID.fullmatch(each.custom_id):
                raise InvalidRequest(
                    f"must be 1 to 64 letters, digits, _ and -, given {show_value(each.custom_id)}",
                    field=field,
                )
            if each.custom_id in custom_ids:
                raise InvalidRequest(
                    f"must differ in each request, given {show_value(each.custom_id)} again",
                    field=field,
                )
            custom_ids.add(each.custom_id)
            body = msgspec.json.encode(each.params)
            name = read_model_name(body)
            if name not in models:
                models[name] = self._find_model(name)
            lines.append(NewLine(each.custom_id, body))
        if len(set(models.values())) > 1:
            raise InvalidRequest(
                f"must name the same model, given {', '.join(sorted(set(models.values()))[:5])}",
                field="requests",
            )
        return lines, next(iter(models.values()))

    def _find_model(self, name: str) -> str:
        if name and name in self._catalogue.away:
            return name
        return self._catalogue.find(name).model.names[0]

    async def retrieve(self, request: Request) -> Response:
        batch, _ = await self._find(request)
        return json_response(_describe(batch, request))

    async def cancel(self, request: Request) -> Response:
        batch, store = await self._find(request)
        cancelled = await store.batches.cancel(batch.id, batch.key_id, "anthropic")
        return json_response(_describe(cancelled or batch, request))

    async def delete(self, request: Request) -> Response:
        batch, store = await self._find(request)
        if not await store.batches.delete(batch.id, batch.key_id, "anthropic"):
            raise BatchEnded(f"the batch {batch.id} has not ended: cancel it first")
        return json_response(DeletedMessageBatch(batch.id))

    async def results(self, request: Request) -> Response:
        batch, store = await self._find(request)
        if not batch.status.is_final:
            raise BatchEnded(f"the batch {batch.id} has not ended: it has no results yet")
        return StreamingResponse(_stream(batch.id, store), media_type="application/x-jsonl")

    async def list(self, request: Request) -> Response:
        query = Query(request.query_params, "limit", "after_id", "before_id", "beta")
        limit = query.integer("limit", _DEFAULT_LIMIT, lowest=1, highest=_HIGHEST_LIMIT)
        after, before = query.text("after_id"), query.text("before_id")
        if after is not None and before is not None:
            raise InvalidRequest("must not be given beside after_id", field="before_id")
        if self._shared.store is None:
            return json_response(MessageBatchPage([], has_more=False, first_id=None, last_id=None))
        page = await self._shared.store.batches.page(
            get_exchange(request.scope).key_id,
            "anthropic",
            BatchPageRequest(limit=limit, after=after, before=before),
        )
        if page is None:
            field = "before_id" if after is None else "after_id"
            raise InvalidRequest(
                f"must be the id of a batch, given {show_value(after or before)}", field=field
            )
        batches = [_describe(batch, request) for batch in page.batches]
        first_id, last_id = (batches[0].id, batches[-1].id) if batches else (None, None)
        return json_response(MessageBatchPage(batches, page.has_more, first_id, last_id))

    async def _find(self, request: Request) -> tuple[StoredBatch, Store]:
        """Returns the batch of the path and the store. Raises BatchNotFound."""
        batch_id = request.path_params["batch_id"]
        store = self._shared.store
        key_id = get_exchange(request.scope).key_id
        batch = None if store is None else await store.batches.get(batch_id, key_id, "anthropic")
        if store is None or batch is None:
            raise BatchNotFound(batch_id)
        return batch, store


async def _stream(batch_id: str, store: Store) -> AsyncIterator[bytes]:
    after = -1
    while results := await store.batches.results(batch_id, after=after, limit=_PAGE):
        after = results[-1].position
        yield b"".join(map(write_anthropic_line, results))


def _describe(batch: StoredBatch, request: Request) -> MessageBatch:
    is_ended = batch.status.is_final
    state: BatchState = "ended" if is_ended else "in_progress"
    if batch.status is BatchStatus.CANCELLING:
        state = "canceling"
    ended_at = batch.completed_at or batch.expired_at or batch.cancelled_at or batch.failed_at
    counts = MessageBatchCounts(
        processing=batch.num_lines - batch.num_ended,
        succeeded=batch.num_succeeded,
        errored=batch.num_errored,
        canceled=batch.num_cancelled,
        expired=batch.num_expired,
    )
    path = request.url.path.partition("/messages/batches")[0]
    url = f"{request.url.scheme}://{request.url.netloc}{path}/messages/batches/{batch.id}/results"
    return MessageBatch(
        id=batch.id,
        processing_status=state,
        request_counts=counts,
        created_at=_format(batch.created_at) or "",
        expires_at=_format(batch.expires_at) or "",
        ended_at=_format(ended_at),
        cancel_initiated_at=_format(batch.cancelling_at),
        archived_at=None,
        results_url=url if is_ended else None,
    )


def _format(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


_QUERY = (
    QueryField("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "Batches in the page."),
    QueryField("after_id", {"type": "string"}, "The page begins behind this batch."),
    QueryField("before_id", {"type": "string"}, "The page ends before this batch."),
)
_PATH = "/v1/messages/batches"
OPERATIONS = (
    Operation(
        method="post",
        path=_PATH,
        prefixes=PREFIXES,
        words="anthropic",
        summary="Creates a batch of messages.",
        overall=lambda catalogue: MessageBatches(catalogue).create,
        bodies=(CreateMessageBatchRequest,),
        answers=(MessageBatch,),
    ),
    Operation(
        method="get",
        path=_PATH,
        prefixes=PREFIXES,
        words="anthropic",
        summary="Lists the batches of messages, the newest first.",
        overall=lambda catalogue: MessageBatches(catalogue).list,
        query=_QUERY,
        answers=(MessageBatchPage,),
    ),
    Operation(
        method="get",
        path=_PATH + "/{batch_id}",
        prefixes=PREFIXES,
        words="anthropic",
        summary="Returns a batch of messages with its progress.",
        overall=lambda catalogue: MessageBatches(catalogue).retrieve,
        answers=(MessageBatch,),
    ),
    Operation(
        method="get",
        path=_PATH + "/{batch_id}/results",
        prefixes=PREFIXES,
        words="anthropic",
        summary="Returns the results of a batch that has ended, one a line.",
        overall=lambda catalogue: MessageBatches(catalogue).results,
        media_type="application/x-jsonl",
    ),
    Operation(
        method="post",
        path=_PATH + "/{batch_id}/cancel",
        prefixes=PREFIXES,
        words="anthropic",
        summary="Cancels a batch of messages; the results so far stay.",
        overall=lambda catalogue: MessageBatches(catalogue).cancel,
        answers=(MessageBatch,),
    ),
    Operation(
        method="delete",
        path=_PATH + "/{batch_id}",
        prefixes=PREFIXES,
        words="anthropic",
        summary="Deletes a batch of messages that has ended, with its results.",
        overall=lambda catalogue: MessageBatches(catalogue).delete,
        answers=(DeletedMessageBatch,),
    ),
)
