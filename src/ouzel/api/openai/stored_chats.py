"""Lists, returns, changes and deletes stored chats. A client finds only its own key's."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.object_list import ObjectList
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.endpoint.pages import PAGE_PARAMETERS, describe_page, read_page
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.api.openai.kept_chat import StoredChatCompletion
from ouzel.store.base import Store
from ouzel.store.chats.base import ChatStore
from ouzel.store.chats.records import ChatFilter, ChatPage, StoredChat
from ouzel.store.errors import ChatNotFound
from ouzel.wire.decode import decode_body
from ouzel.wire.fields import Labels

_PAGE = describe_page("object", order="asc")
_LIST = (
    *_PAGE,
    QueryField("model", {"type": "string"}, "Lists only completions of this model."),
    QueryField(
        "metadata",
        {"type": "object", "additionalProperties": {"type": "string"}},
        "Lists only completions with these labels: metadata[name]=value.",
    ),
)
_MESSAGE = {
    "type": "object",
    "required": ["id", "role"],
    "properties": {
        "id": {"type": "string"},
        "role": {"type": "string"},
        "content": {"type": ["string", "null"]},
        "content_parts": {"type": ["array", "null"], "items": {"type": "object"}},
    },
}


class UpdateChatRequest(msgspec.Struct, kw_only=True):
    metadata: Annotated[
        Labels | None,
        Meta(description="Replaces the labels of the completion; null removes them."),
    ]


class DeletedChat(msgspec.Struct, frozen=True, tag_field="object", tag="chat.completion.deleted"):
    id: str
    deleted: bool = True


class ChatList(ObjectList[StoredChatCompletion], frozen=True):
    pass


class ChatMessageList(
    ObjectList[Annotated[msgspec.Raw, Meta(extra_json_schema=_MESSAGE)]], frozen=True
):
    pass


class _EncodedChatList(ObjectList[msgspec.Raw], frozen=True):
    """A `ChatList` whose objects are JSON already."""


class StoredChats:
    def __init__(self, catalogue: Catalogue) -> None:
        self._store: Store | None = catalogue.shared.store
        self._archive = catalogue.shared.chats
        self._bodies = catalogue.shared.bodies

    async def list(self, request: Request) -> Response:
        """Lists the stored chats; a server that stores nothing has none."""
        query = Query(request.query_params, *PAGE_PARAMETERS, "model", maps=("metadata",))
        chosen = ChatFilter(model=query.text("model"), labels=query.mapping("metadata"))
        page = read_page(query, order="asc")
        if self._store is None:
            return json_response(_show_chats(ChatPage((), has_more=False)))
        await self._archive.settle()
        key_id = get_exchange(request.scope).key_id
        return json_response(_show_chats(await self._store.chats.page(key_id, chosen, page)))

    async def retrieve(self, request: Request) -> Response:
        chats, key_id = await self._chats(request), get_exchange(request.scope).key_id
        return _answer(await chats.get(_id(request), key_id), request)

    async def update(self, request: Request) -> Response:
        """Replaces the metadata."""
        with self._bodies.share() as share:
            body = await self._bodies.read(request.scope, request.receive, share)
        metadata = decode_body(body, UpdateChatRequest).metadata or {}
        chats, key_id = await self._chats(request), get_exchange(request.scope).key_id
        return _answer(await chats.update(_id(request), key_id, metadata), request)

    async def delete(self, request: Request) -> Response:
        chats, key_id = await self._chats(request), get_exchange(request.scope).key_id
        if not await chats.delete(_id(request), key_id):
            raise ChatNotFound(_id(request))
        return json_response(DeletedChat(_id(request)))

    async def messages(self, request: Request) -> Response:
        """Lists the messages of the request, in their order."""
        page = read_page(Query(request.query_params, *PAGE_PARAMETERS), order="asc")
        chats, key_id = await self._chats(request), get_exchange(request.scope).key_id
        found = await chats.messages(_id(request), key_id, page)
        shown = ChatMessageList.of(
            found.items, lambda item: msgspec.Raw(item.body), has_more=found.has_more
        )
        return json_response(shown)

    async def _chats(self, request: Request) -> ChatStore:
        """Returns the stored chats. Raises ChatNotFound if the server stores nothing."""
        if self._store is None:
            raise ChatNotFound(_id(request))
        await self._archive.settle()
        return self._store.chats


def _id(request: Request) -> str:
    completion_id = request.path_params["completion_id"]
    assert isinstance(completion_id, str)
    return completion_id


def _answer(chat: StoredChat | None, request: Request) -> Response:
    if chat is None:
        raise ChatNotFound(_id(request))
    return Response(_show_chat(chat), media_type="application/json")


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _show_chat(chat: StoredChat) -> bytes:
    metadata = msgspec.Raw(msgspec.json.encode(chat.metadata))
    return msgspec.json.encode(_FIELDS.decode(chat.body) | {"metadata": metadata})


def _show_chats(page: ChatPage) -> _EncodedChatList:
    return _EncodedChatList.of(
        page.chats, lambda chat: msgspec.Raw(_show_chat(chat)), has_more=page.has_more
    )


OPERATIONS = (
    Operation(
        method="get",
        path="/v1/chat/completions",
        prefixes=PREFIXES,
        missing_profile="ovms",
        summary="Lists the stored chats.",
        overall=lambda catalogue: StoredChats(catalogue).list,
        query=_LIST,
        answers=(ChatList,),
    ),
    Operation(
        method="get",
        path="/v1/chat/completions/{completion_id}",
        prefixes=PREFIXES,
        summary="Returns a stored chat, without its messages.",
        overall=lambda catalogue: StoredChats(catalogue).retrieve,
        answers=(StoredChatCompletion,),
    ),
    Operation(
        method="post",
        path="/v1/chat/completions/{completion_id}",
        prefixes=PREFIXES,
        summary="Replaces the labels of a stored chat.",
        overall=lambda catalogue: StoredChats(catalogue).update,
        bodies=(UpdateChatRequest,),
        answers=(StoredChatCompletion,),
    ),
    Operation(
        method="delete",
        path="/v1/chat/completions/{completion_id}",
        prefixes=PREFIXES,
        summary="Deletes a stored chat and its messages.",
        overall=lambda catalogue: StoredChats(catalogue).delete,
        answers=(DeletedChat,),
    ),
    Operation(
        method="get",
        path="/v1/chat/completions/{completion_id}/messages",
        prefixes=PREFIXES,
        summary="Lists the messages of the request of a stored chat.",
        overall=lambda catalogue: StoredChats(catalogue).messages,
        query=_PAGE,
        answers=(ChatMessageList,),
    ),
)
