"""Reads the page of a list that a query asks for, with OpenAI's parameters."""

from typing import Literal

from ouzel.api.endpoint.operation import QueryField
from ouzel.api.http.query import Query
from ouzel.store.records import PageRequest

PAGE_PARAMETERS = ("limit", "order", "after")
Order = Literal["asc", "desc"]


def read_page(query: Query, *, default: int = 20, most: int = 100, order: Order) -> PageRequest:
    """Reads the page; `order` and `default` are used where the query names none.

    Raises InvalidRequest.
    """
    return PageRequest(
        limit=query.integer("limit", default, lowest=1, highest=most),
        is_ascending=query.choice("order", order, ("asc", "desc")) == "asc",
        after=query.text("after"),
    )


def describe_page(
    noun: str, *, default: int = 20, most: int = 100, order: Order
) -> tuple[QueryField, ...]:
    """Returns the parameters of `read_page` for the OpenAPI document; `noun` is one object."""
    return (
        QueryField(
            "limit",
            {"type": "integer", "minimum": 1, "maximum": most},
            f"{noun.capitalize()}s in a page. Default: {default}.",
        ),
        QueryField("order", {"enum": ["asc", "desc"]}, f"The order by age. Default: {order}."),
        QueryField("after", {"type": "string"}, f"The id of the {noun} before the page."),
    )
