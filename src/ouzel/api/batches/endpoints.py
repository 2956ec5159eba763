"""Creates, finds, lists and cancels batches. A client finds only its own key's."""

import secrets

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.batches.objects import Batch, BatchList, CreateBatchRequest
from ouzel.api.batches.result_files import StoredBatchFiles
from ouzel.api.batches.room import require_room
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.batches.errors import BatchEnded, BatchNotFound
from ouzel.batches.limits import MAX_INPUT_BYTES
from ouzel.errors import InvalidRequest
from ouzel.store.base import Store
from ouzel.store.batches.records import BatchPageRequest, BatchStatus, NewBatch
from ouzel.wire.decode import decode_body
from ouzel.wire.validation_errors import show_value

_DEFAULT_LIMIT, _HIGHEST_LIMIT = 20, 100
_PURPOSE = "batch"
_HOUR_S = 3600
_CANCELLABLE = (BatchStatus.CANCELLING, BatchStatus.CANCELLED)


class Batches:
    def __init__(self, catalogue: Catalogue) -> None:
        self._shared = catalogue.shared

    async def create(self, request: Request) -> Response:
        bodies = self._shared.bodies
        with bodies.share() as share:
            body = await bodies.read(request.scope, request.receive, share)
        fields = decode_body(body, CreateBatchRequest)
        store = self._shared.store
        if store is None:
            raise InvalidRequest("a batch cannot be created: this server stores nothing")
        key_id = get_exchange(request.scope).key_id
        await require_room(store, key_id, self._shared.limits)
        await _check_file(store, fields.input_file_id, key_id)
        expiry = fields.output_expires_after
        new = NewBatch(
            id=f"batch_{secrets.token_hex(16)}",
            key_id=key_id,
            dialect="openai",
            endpoint=fields.endpoint,
            input_file_id=fields.input_file_id,
            window_s=int(fields.completion_window.removesuffix("h")) * _HOUR_S,
            metadata=None if fields.metadata is None else msgspec.json.encode(fields.metadata),
            output_expires_after_s=None if expiry is None else expiry.seconds,
        )
        return json_response(Batch.of(await store.batches.add(new)))

    async def retrieve(self, request: Request) -> Response:
        batch_id = _read_id(request)
        store = self._require_store(batch_id)
        batch = await store.batches.get(batch_id, get_exchange(request.scope).key_id, "openai")
        if batch is None:
            raise BatchNotFound(batch_id)
        return json_response(Batch.of(batch))

    async def cancel(self, request: Request) -> Response:
        batch_id = _read_id(request)
        store = self._require_store(batch_id)
        batch = await store.batches.cancel(batch_id, get_exchange(request.scope).key_id, "openai")
        if batch is None:
            raise BatchNotFound(batch_id)
        if batch.status not in _CANCELLABLE:
            raise BatchEnded(
                f"the batch {batch_id} cannot be cancelled: its status is {batch.status.value}"
            )
        return json_response(Batch.of(batch))

    async def list(self, request: Request) -> Response:
        query = Query(request.query_params, "limit", "after")
        limit = query.integer("limit", _DEFAULT_LIMIT, lowest=1, highest=_HIGHEST_LIMIT)
        after = query.text("after")
        if self._shared.store is None:
            return json_response(BatchList.of((), Batch.of))
        page = await self._shared.store.batches.page(
            get_exchange(request.scope).key_id, "openai", BatchPageRequest(limit=limit, after=after)
        )
        if page is None:
            raise InvalidRequest(
                f"must be the id of a batch, given {show_value(after)}", field="after"
            )
        return json_response(BatchList.of(page.batches, Batch.of, has_more=page.has_more))

    def _require_store(self, batch_id: str) -> Store:
        """Returns the store. Raises BatchNotFound if the server has none."""
        if self._shared.store is None:
            raise BatchNotFound(batch_id)
        return self._shared.store


async def _check_file(store: Store, file_id: str, key_id: str | None) -> None:
    """Raises InvalidRequest unless the file of the key may be the input of a batch."""
    file = await StoredBatchFiles(store).find(file_id, key_id)
    field = "input_file_id"
    if file is None:
        raise InvalidRequest(
            f"must be the id of a file, given {show_value(file_id)}: it does not exist", field=field
        )
    if file.purpose != _PURPOSE:
        raise InvalidRequest(
            f"must be a file with the purpose {_PURPOSE}, given the purpose {file.purpose}",
            field=field,
        )
    if file.num_bytes > MAX_INPUT_BYTES:
        raise InvalidRequest(
            f"must be a file of at most {MAX_INPUT_BYTES} bytes, given {file.num_bytes}",
            field=field,
        )


def _read_id(request: Request) -> str:
    batch_id = request.path_params["batch_id"]
    assert isinstance(batch_id, str)
    return batch_id


_QUERY = (
    QueryField("limit", {"type": "integer", "minimum": 1, "maximum": 100}, "Batches in the page."),
    QueryField("after", {"type": "string"}, "The page begins behind the batch with this id."),
)
OPERATIONS = (
    Operation(
        method="post",
        path="/v1/batches",
        prefixes=PREFIXES,
        summary="Creates a batch from an uploaded file with one request a line.",
        overall=lambda catalogue: Batches(catalogue).create,
        bodies=(CreateBatchRequest,),
        answers=(Batch,),
    ),
    Operation(
        method="get",
        path="/v1/batches",
        prefixes=PREFIXES,
        summary="Lists the batches of the API key, the newest first.",
        overall=lambda catalogue: Batches(catalogue).list,
        query=_QUERY,
        answers=(BatchList,),
    ),
    Operation(
        method="get",
        path="/v1/batches/{batch_id}",
        prefixes=PREFIXES,
        summary="Returns a batch with its progress.",
        overall=lambda catalogue: Batches(catalogue).retrieve,
        answers=(Batch,),
    ),
    Operation(
        method="post",
        path="/v1/batches/{batch_id}/cancel",
        prefixes=PREFIXES,
        summary="Cancels a batch; the results so far stay.",
        overall=lambda catalogue: Batches(catalogue).cancel,
        answers=(Batch,),
    ),
)
