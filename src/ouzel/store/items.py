"""Reads and writes the items of responses and conversations, which are rows of one table."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from ouzel.store.errors import ItemNotFound
from ouzel.store.records import Item, Page, PageRequest
from ouzel.store.tables import items

_ADD = insert(items)
_ROW_BYTES = 128  # estimated size of an item's row and index entries without id and body


def compute_size(some_items: Sequence[Item]) -> int:
    return sum(len(item.body) + len(item.id) + _ROW_BYTES for item in some_items)


def add_items(
    connection: Connection,
    owner_id: str,
    key_id: str | None,
    new_items: Sequence[Item],
    *,
    position: int,
    is_output: bool = False,
) -> None:
    """Adds items to a response or conversation (`owner_id`), at `position` and after it."""
    if not new_items:
        return
    rows = [
        {
            "owner_id": owner_id,
            "position": position + index,
            "is_output": is_output,
            "id": item.id,
            "key_id": key_id,
            "body": item.body,
        }
        for index, item in enumerate(new_items)
    ]
    connection.execute(_ADD, rows)


def any_item(connection: Connection, item_id: str, key_id: str | None) -> Item | None:
    """Finds an item in any response or conversation of the key.

    Several rows may have the id, because clients send items back; any of these rows will do.
    """
    query = select(items.c.id, items.c.body).where(
        items.c.id == item_id, items.c.key_id.is_not_distinct_from(key_id)
    )
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else Item(*row)


def select_page(all_items: Sequence[Item], request: PageRequest) -> Page:
    """Returns the page of the items that follows the item `after`.

    If `after` is listed twice, the page follows its last place. Raises ItemNotFound.
    """
    ordered = all_items if request.is_ascending else all_items[::-1]
    start = 0
    if request.after is not None:
        start = next(
            (n for n in range(len(ordered), 0, -1) if ordered[n - 1].id == request.after), 0
        )
        if not start:
            raise ItemNotFound(request.after, param="after")
    end = start + request.limit
    return Page(tuple(ordered[start:end]), has_more=end < len(ordered))
