"""The paths of the Conversations API."""

from collections.abc import Callable

from starlette.routing import Route
from starlette.types import ASGIApp

from ouzel.api.conversations.items import ConversationItems
from ouzel.api.conversations.stored import KeptConversations
from ouzel.api.http.body_endpoint import AnswerBody
from ouzel.api.paths import PREFIXES
from ouzel.store.base import Store


def conversation_routes(store: Store | None, body_endpoint: Callable[[AnswerBody], ASGIApp]) -> list[Route]:
    kept = KeptConversations(store)
    items = ConversationItems(kept)
    create, update, create_items = (body_endpoint(each) for each in (kept.create, kept.update, items.create))
    routes = []
    for prefix in PREFIXES:
        one = f"{prefix}/conversations/{{conversation_id}}"
        routes += [
            Route(f"{prefix}/conversations", create, methods=["POST"]),
            Route(one, kept.retrieve, methods=["GET"]),
            Route(one, update, methods=["POST"]),
            Route(one, kept.delete, methods=["DELETE"]),
            Route(f"{one}/items", create_items, methods=["POST"]),
            Route(f"{one}/items", items.list, methods=["GET"]),
            Route(f"{one}/items/{{item_id}}", items.retrieve, methods=["GET"]),
            Route(f"{one}/items/{{item_id}}", items.delete, methods=["DELETE"]),
        ]
    return routes
