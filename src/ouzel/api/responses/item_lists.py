"""Items of a response and those of a conversation are listed alike, page by page."""

import msgspec

from ouzel.api.endpoint.operation import QueryField
from ouzel.api.http.query import Query
from ouzel.responses.request import LOGPROBS, check_includable
from ouzel.store.records import Page, PageRequest

PAGE_PARAMETERS = ("include", "limit", "order", "after")
INCLUDE = QueryField(
    "include", {"type": "array", "items": {"enum": [LOGPROBS]}}, "What is shown beside the text, if it was made so."
)
PAGE = (
    INCLUDE,
    QueryField("limit", {"type": "integer", "minimum": 1, "maximum": 100}, "Items in a page. Default: 20."),
    QueryField("order", {"enum": ["asc", "desc"]}, "By age. Default: desc."),
    QueryField("after", {"type": "string"}, "The id of the item before the first."),
)


class ItemList(msgspec.Struct, frozen=True, tag_field="object", tag="list"):
    data: list[msgspec.Raw]
    first_id: str | None
    last_id: str | None
    has_more: bool

    @classmethod
    def of(cls, page: Page) -> "ItemList":
        items = page.items
        return cls(
            [msgspec.Raw(item.body) for item in items],
            first_id=items[0].id if items else None,
            last_id=items[-1].id if items else None,
            has_more=page.has_more,
        )


def page_request(query: Query) -> PageRequest:
    """Returns what page the query asks for; OpenAI's defaults are 20 items, the newest first."""
    asks_for_logprobs(query)
    return PageRequest(
        limit=query.integer("limit", 20, lowest=1, highest=100),
        is_ascending=query.choice("order", "desc", ("asc", "desc")) == "asc",
        after=query.text("after"),
    )


def asks_for_logprobs(query: Query) -> bool:
    """Items have them when their response was made with them."""
    names = query.texts("include")
    for name in names:
        check_includable(name, "include")
    return bool(names)
