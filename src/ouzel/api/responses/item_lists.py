"""Lists the items of responses and conversations in pages."""

from collections.abc import Collection
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.api.endpoint import pages
from ouzel.api.endpoint.object_list import ObjectList
from ouzel.api.endpoint.operation import QueryField
from ouzel.api.http.query import Query
from ouzel.responses.includable import (
    ENCRYPTED_REASONING,
    INCLUDABLE,
    check_includable,
    log_never_present,
)
from ouzel.responses.items.encrypted_reasoning import with_encrypted_reasoning
from ouzel.store.records import Item, Page, PageRequest

PAGE_PARAMETERS = ("include", *pages.PAGE_PARAMETERS)
INCLUDE = QueryField(
    "include",
    {"type": "array", "items": {"enum": list(INCLUDABLE)}},
    "Facts to show beside the text.",
)
PAGE = (INCLUDE, *pages.describe_page("item", order="desc"))


# an item in its stored form; the input of a response describes all kinds
_ITEM = {
    "type": "object",
    "required": ["id", "type"],
    "properties": {"id": {"type": "string"}, "type": {"type": "string"}},
}


class ItemList(ObjectList[Annotated[msgspec.Raw, Meta(extra_json_schema=_ITEM)]], frozen=True):
    pass


def list_items(page: Page, included: Collection[str]) -> ItemList:
    def show(item: Item) -> msgspec.Raw:
        return msgspec.Raw(add_included(item.body, included))

    return ItemList.of(page.items, show, has_more=page.has_more)


def page_request(query: Query) -> PageRequest:
    """Reads the page that the query asks for. As at OpenAI, the default is the newest 20 items."""
    return pages.read_page(query, order="desc")


def read_included(query: Query) -> frozenset[str]:
    names = query.texts("include")
    for name in names:
        check_includable(name, "include")
    log_never_present(names)
    return frozenset(names)


def add_included(body: bytes, included: Collection[str]) -> bytes:
    """Adds the included facts to a stored body.

    A body has logprobs if it was made with logprobs.
    """
    return with_encrypted_reasoning(body) if ENCRYPTED_REASONING in included else body
