from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.conversations.objects import Conversation, CreateItemsRequest
from ouzel.api.conversations.stored import (
    ConversationEndpoints,
    StoredConversations,
    conversation_id,
)
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.api.responses.item_lists import (
    INCLUDE,
    PAGE,
    PAGE_PARAMETERS,
    ItemList,
    add_included,
    list_items,
    page_request,
    read_included,
)
from ouzel.store.errors import ItemNotFound
from ouzel.store.records import Page
from ouzel.wire.decode import decode_body


class StoredItems:
    """Finds and deletes items of conversations; needs no model."""

    def __init__(self, conversations: StoredConversations) -> None:
        self._stored = conversations

    async def list(self, request: Request) -> Response:
        query = Query(request.query_params, *PAGE_PARAMETERS)
        page, included = page_request(query), read_included(query)
        store, key_id = self._stored.store(request), get_exchange(request.scope).key_id
        items = await store.conversation_page(conversation_id(request), key_id, page)
        return json_response(list_items(items, included))

    async def retrieve(self, request: Request) -> Response:
        included = read_included(Query(request.query_params, "include"))
        store, key_id = self._stored.store(request), get_exchange(request.scope).key_id
        item = await store.conversation_item(conversation_id(request), key_id, _id(request))
        if item is None:
            raise _not_found(request)
        return Response(add_included(item.body, included), media_type="application/json")

    async def delete(self, request: Request) -> Response:
        """Deletes an item, and answers with the conversation."""
        store, key_id = self._stored.store(request), get_exchange(request.scope).key_id
        if not await store.delete_conversation_item(conversation_id(request), key_id, _id(request)):
            raise _not_found(request)
        return json_response(await self._stored.find(request))


class ConversationItems:
    """Creates items, which the model must be able to read."""

    def __init__(self, conversations: ConversationEndpoints) -> None:
        self._conversations = conversations

    async def create(self, request: Request, body: bytes) -> ItemList:
        included = read_included(Query(request.query_params, "include"))
        fields = decode_body(body, CreateItemsRequest)
        store, owner_id = self._conversations.store(request), conversation_id(request)
        key_id = get_exchange(request.scope).key_id
        new = await self._conversations.new_items(store, key_id).read(
            fields.items, conversation_id=owner_id
        )
        await store.add_conversation_items(owner_id, key_id, new)
        return list_items(Page(new, has_more=False), included)


def _stored_items(catalogue: Catalogue) -> StoredItems:
    return StoredItems(StoredConversations(catalogue.shared.store))


def _id(request: Request) -> str:
    item_id = request.path_params["item_id"]
    assert isinstance(item_id, str)
    return item_id


def _not_found(request: Request) -> ItemNotFound:
    return ItemNotFound(_id(request), param="item_id")


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}/items",
        prefixes=PREFIXES,
        summary="Adds items at the end of a conversation.",
        endpoint=lambda services: services.make_body_endpoint(
            ConversationItems(ConversationEndpoints.of(services)).create
        ),
        query=(INCLUDE,),
        bodies=(CreateItemsRequest,),
        answers=(ItemList,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items",
        prefixes=PREFIXES,
        summary="Lists the items of a conversation.",
        overall=lambda catalogue: _stored_items(catalogue).list,
        query=PAGE,
        answers=(ItemList,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        prefixes=PREFIXES,
        summary="Returns one item of a conversation.",
        overall=lambda catalogue: _stored_items(catalogue).retrieve,
        query=(INCLUDE,),
        answers=(dict[str, object],),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}/items/{item_id}",
        prefixes=PREFIXES,
        summary="Deletes an item from a conversation, and answers with the conversation.",
        overall=lambda catalogue: _stored_items(catalogue).delete,
        answers=(Conversation,),
    ),
)
