import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.api.responses.item_lists import (
    PAGE,
    PAGE_PARAMETERS,
    ItemList,
    list_items,
    page_request,
    read_included,
)
from ouzel.errors import InvalidRequest
from ouzel.responses.response_object import ResponseObject
from ouzel.responses.run import Run
from ouzel.responses.runs import Runs
from ouzel.responses.stored.end_stored import cancel_stored
from ouzel.store.base import Store
from ouzel.store.errors import ResponseNotFound, StoreUnavailable
from ouzel.store.records import StoredResponse

_MAX_WAIT_S = 5.0


class DeletedResponse(msgspec.Struct, tag_field="object", tag="response"):
    id: str
    deleted: bool = True


class StoredResponseEndpoints:
    """Finds, deletes and cancels responses.

    A client finds only the responses of its own API key.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def find(self, request: Request) -> StoredResponse:
        stored = await self.store(request).response(
            _id(request), get_exchange(request.scope).key_id
        )
        if stored is None:
            raise _not_found(request)
        return stored

    async def delete(self, request: Request) -> Response:
        """Deletes the response, then cancels it if it is running.

        So its end is not stored, and deletion works on a full disk too.
        """
        stored = await self.find(request)
        run = self._runs.find(stored.id, stored.key_id)
        if not await self.store(request).delete_response(stored.id, stored.key_id):
            raise _not_found(request)
        if run is not None:
            run.cancel()
            await run.log.closed()
        return json_response(DeletedResponse(stored.id))

    async def cancel(self, request: Request) -> Response:
        """Cancels a running response, stored or not, or a queued one.

        Raises InvalidRequest if the response has ended in another way.
        """
        run = self._runs.find(_id(request), get_exchange(request.scope).key_id)
        stored = await self.find(request) if run is None or run.is_stored else None
        if run is not None:
            run.cancel()
            await _wait_for_end(run)
            response: ResponseObject | None = run.response
        else:
            assert stored is not None
            response = await cancel_stored(self.store(request), stored)
        if response is None:
            raise _not_found(request)
        if response.status != "cancelled":
            raise InvalidRequest(
                f"a response that is {response.status} cannot be cancelled", param="response_id"
            )
        return json_response(response)

    async def input_items(self, request: Request) -> Response:
        query = Query(request.query_params, *PAGE_PARAMETERS)
        page, included = page_request(query), read_included(query)
        store = self.store(request)
        items = await store.input_items(_id(request), get_exchange(request.scope).key_id, page)
        if items is None:
            raise _not_found(request)
        return json_response(list_items(items, included))

    def store(self, request: Request) -> Store:
        if self._runs.store is None:
            raise _not_found(request)
        return self._runs.store


async def _wait_for_end(run: Run) -> None:
    """Waits for the end of a cancelled response.

    Raises StoreUnavailable if the end of a background response cannot be stored for now.
    """
    try:
        async with asyncio.timeout(_MAX_WAIT_S):
            await run.log.closed()
    except TimeoutError:
        why = "the response has been stopped, but its end cannot be stored now"
        raise StoreUnavailable(why, retry_after_s=1.0) from None


def _id(request: Request) -> str:
    response_id = request.path_params["response_id"]
    assert isinstance(response_id, str)
    return response_id


def _not_found(request: Request) -> ResponseNotFound:
    return ResponseNotFound(_id(request), param="response_id")


OPERATIONS = (
    Operation(
        method="delete",
        path="/v1/responses/{response_id}",
        prefixes=PREFIXES,
        summary="Deletes a stored response; a running response is cancelled.",
        overall=lambda catalogue: StoredResponseEndpoints(catalogue.shared.runs).delete,
        answers=(DeletedResponse,),
    ),
    Operation(
        method="post",
        path="/v1/responses/{response_id}/cancel",
        prefixes=PREFIXES,
        summary="Cancels a running response.",
        overall=lambda catalogue: StoredResponseEndpoints(catalogue.shared.runs).cancel,
        answers=(ResponseObject,),
    ),
    Operation(
        method="get",
        path="/v1/responses/{response_id}/input_items",
        prefixes=PREFIXES,
        summary="Lists the input items of a response, with the items that it continued.",
        overall=lambda catalogue: StoredResponseEndpoints(catalogue.shared.runs).input_items,
        query=PAGE,
        answers=(ItemList,),
    ),
)
