"""Creates, finds, changes and deletes conversations. A client finds only its own key's."""

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.conversations.objects import (
    Conversation,
    CreateConversationRequest,
    DeletedConversation,
    UpdateConversationRequest,
)
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.send import json_response
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.responses.new_items import NewItems
from ouzel.responses.output_items import new_id
from ouzel.store.base import Store
from ouzel.store.errors import ConversationNotFound
from ouzel.store.records import StoredConversation
from ouzel.wire.decode import decode_body


class StoredConversations:
    """Finds, changes and deletes conversations; needs no model."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    async def retrieve(self, request: Request) -> Response:
        return json_response(await self.find(request))

    async def delete(self, request: Request) -> Response:
        deleted_id = conversation_id(request)
        if not await self.store(request).delete_conversation(
            deleted_id, get_exchange(request.scope).key_id
        ):
            raise _not_found(request)
        return json_response(DeletedConversation(deleted_id))

    async def find(self, request: Request) -> Conversation:
        store = self.store(request)
        return _make_conversation(
            await store.conversation(conversation_id(request), get_exchange(request.scope).key_id),
            request,
        )

    def store(self, request: Request) -> Store:
        """Returns the store. Raises ConversationNotFound if the server has none."""
        if self._store is None:
            raise _not_found(request)
        return self._store


class ConversationEndpoints(StoredConversations):
    """Creates conversations and items too, which the model must be able to read."""

    def __init__(self, store: Store | None, model: ServedModel) -> None:
        super().__init__(store)
        self._model = model

    @classmethod
    def of(cls, services: Services) -> "ConversationEndpoints":
        return cls(services.store, services.model)

    async def create(self, request: Request, body: bytes) -> Conversation:
        fields = decode_body(body, CreateConversationRequest)
        if self._store is None:
            raise InvalidRequest("a conversation cannot be created: this server stores nothing")
        key_id = get_exchange(request.scope).key_id
        new = await self.new_items(self._store, key_id).read(fields.items or [])
        stored = await self._store.create_conversation(
            new_id("conv"), key_id, fields.metadata or {}, new
        )
        return Conversation.of(stored)

    async def update(self, request: Request, body: bytes) -> Conversation:
        fields = decode_body(body, UpdateConversationRequest)
        return _make_conversation(
            await self.store(request).update_conversation(
                conversation_id(request), get_exchange(request.scope).key_id, fields.metadata or {}
            ),
            request,
        )

    def new_items(self, store: Store, key_id: str | None) -> NewItems:
        return NewItems(store, key_id, readable=self._model.renderer.readable)


def conversation_id(request: Request) -> str:
    id_in_path = request.path_params["conversation_id"]
    assert isinstance(id_in_path, str)
    return id_in_path


def _make_conversation(stored: StoredConversation | None, request: Request) -> Conversation:
    if stored is None:
        raise _not_found(request)
    return Conversation.of(stored)


def _not_found(request: Request) -> ConversationNotFound:
    return ConversationNotFound(conversation_id(request), param="conversation_id")


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/conversations",
        prefixes=PREFIXES,
        summary="Creates a conversation, with or without items.",
        endpoint=lambda services: services.make_body_endpoint(
            ConversationEndpoints.of(services).create
        ),
        bodies=(CreateConversationRequest,),
        answers=(Conversation,),
    ),
    Operation(
        method="get",
        path="/v1/conversations/{conversation_id}",
        prefixes=PREFIXES,
        summary="Returns a stored conversation, without its items.",
        overall=lambda catalogue: StoredConversations(catalogue.shared.store).retrieve,
        answers=(Conversation,),
    ),
    Operation(
        method="post",
        path="/v1/conversations/{conversation_id}",
        prefixes=PREFIXES,
        summary="Replaces the labels of a conversation.",
        endpoint=lambda services: services.make_body_endpoint(
            ConversationEndpoints.of(services).update
        ),
        bodies=(UpdateConversationRequest,),
        answers=(Conversation,),
    ),
    Operation(
        method="delete",
        path="/v1/conversations/{conversation_id}",
        prefixes=PREFIXES,
        summary="Deletes a conversation and its items.",
        overall=lambda catalogue: StoredConversations(catalogue.shared.store).delete,
        answers=(DeletedConversation,),
    ),
)
