"""Reads and writes the rows of vector stores; each function runs in a transaction."""

from collections.abc import Collection, Sequence
from typing import Any  # rows: their type lists each column

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)

from ouzel.store.errors import VectorStoreNotFound
from ouzel.store.files.tables import files, is_visible
from ouzel.store.tables import unix_now
from ouzel.store.vector_stores.records import (
    CursorRequest,
    FileCounts,
    NewVectorStore,
    StoreChange,
    StoredVectorStore,
    VectorStorePage,
)
from ouzel.store.vector_stores.tables import (
    vector_store_batches,
    vector_store_files,
    vector_store_waste,
    vector_stores,
)

_DAY_S = 86400.0
_TOUCH_S = 60.0  # precision of the time of the last use
_MAX_EXPIRED = 100  # vector stores in one transaction

# Whether the uploaded file of a row still exists: a deleted file leaves its vector stores.
is_present = select(files.c.id).where(files.c.id == vector_store_files.c.file_id, is_visible)
is_present_exists = is_present.correlate(vector_store_files).exists()
_expires_at = vector_stores.c.last_active_at + vector_stores.c.expires_after_days * _DAY_S
is_expired = and_(vector_stores.c.expires_after_days.is_not(None), _expires_at <= unix_now())
_QUERY = select(*vector_stores.c, is_expired.label("is_expired"))


def create(connection: Connection, new: NewVectorStore) -> None:
    values = {name: getattr(new, name) for name in NewVectorStore.__struct_fields__}
    values |= {"created_at": unix_now(), "last_active_at": unix_now()}
    connection.execute(insert(vector_stores).values(values))


def belongs_to_key(store_id: str, key_id: str | None) -> ColumnElement[bool]:
    return and_(vector_stores.c.id == store_id, vector_stores.c.key_id.is_not_distinct_from(key_id))


def get(connection: Connection, store_id: str, key_id: str | None) -> StoredVectorStore | None:
    row = connection.execute(_QUERY.where(belongs_to_key(store_id, key_id))).one_or_none()
    return None if row is None else _build(connection, [row])[0]


def require(connection: Connection, store_id: str, key_id: str | None) -> StoredVectorStore:
    """Returns the vector store. Raises VectorStoreNotFound."""
    found = get(connection, store_id, key_id)
    if found is None:
        raise VectorStoreNotFound(store_id)
    return found


def page(connection: Connection, key_id: str | None, page: CursorRequest) -> VectorStorePage:
    def find_number(store_id: str, param: str) -> int:
        query = select(vector_stores.c.number).where(belongs_to_key(store_id, key_id))
        number = connection.execute(query).scalar_one_or_none()
        if number is None:
            raise VectorStoreNotFound(store_id, param=param)
        return int(number)

    query = _QUERY.where(vector_stores.c.key_id.is_not_distinct_from(key_id))
    after = None if page.after is None else find_number(page.after, "after")
    before = None if page.before is None else find_number(page.before, "before")
    rows, has_more = select_page(
        connection, query, vector_stores.c.number, page, after=after, before=before
    )
    return VectorStorePage(tuple(_build(connection, rows)), has_more)


def select_page(
    connection: Connection,
    query: Select[Any],
    number: Column[int],
    page: CursorRequest,
    *,
    after: int | None,
    before: int | None,
) -> tuple[list[Any], bool]:
    """Returns the rows of a page in order, and whether there are more in its direction.

    Without `after`, a page before `before` has the rows next to it.
    """
    is_ascending = page.is_ascending
    if after is not None:
        query = query.where(number > after if is_ascending else number < after)
    if before is not None:
        query = query.where(number < before if is_ascending else number > before)
    reads_back = before is not None and after is None
    order = number.asc() if is_ascending != reads_back else number.desc()
    rows = list(connection.execute(query.order_by(order).limit(page.limit + 1)).all())
    found = rows[: page.limit]
    return found[::-1] if reads_back else found, len(rows) > page.limit


def _build(connection: Connection, rows: Sequence[Any]) -> list[StoredVectorStore]:
    """Adds the counts of files to rows of vector stores."""
    ids = [row.id for row in rows]
    counts, sizes = count_files(connection, vector_store_files.c.store_id, ids)
    built = []
    for row in rows:
        values = {
            name: row._mapping[name]
            for name in StoredVectorStore.__struct_fields__
            if name in row._mapping
        }
        built.append(
            StoredVectorStore(
                **{**values, "is_expired": bool(row.is_expired)},
                counts=counts.get(row.id, FileCounts()),
                usage_bytes=sizes.get(row.id, 0),
            )
        )
    return built


def count_files(
    connection: Connection, column: Column[str], ids: Collection[str]
) -> tuple[dict[str, FileCounts], dict[str, int]]:
    """Counts files by their status, and sums their sizes, for each value of a column."""
    status = vector_store_files.c.status
    query = (
        select(column, status, func.count(), func.sum(vector_store_files.c.usage_bytes))
        .where(column.in_(ids), is_present_exists)
        .group_by(column, status)
    )
    numbers: dict[str, dict[str, int]] = {}
    sizes: dict[str, int] = {}
    for owner_id, name, number, num_bytes in connection.execute(query):
        numbers.setdefault(owner_id, {})[name] = number
        sizes[owner_id] = sizes.get(owner_id, 0) + int(num_bytes)
    return {owner_id: FileCounts(**found) for owner_id, found in numbers.items()}, sizes


def change(
    connection: Connection, store_id: str, key_id: str | None, change: StoreChange
) -> StoredVectorStore:
    require(connection, store_id, key_id)
    values = {name: getattr(change, name) for name in StoreChange.__struct_fields__}
    is_it = vector_stores.c.id == store_id
    connection.execute(
        update(vector_stores).where(is_it).values(**values, last_active_at=unix_now())
    )
    return require(connection, store_id, key_id)


def touch(connection: Connection, store_ids: Collection[str]) -> None:
    is_old = vector_stores.c.last_active_at < unix_now() - _TOUCH_S
    connection.execute(
        update(vector_stores)
        .where(vector_stores.c.id.in_(store_ids), is_old)
        .values(last_active_at=unix_now())
    )


def remove(connection: Connection, store_id: str, key_id: str | None) -> bool:
    if get(connection, store_id, key_id) is None:
        return False
    drop_files(connection, vector_store_files.c.store_id == store_id)
    connection.execute(
        delete(vector_store_batches).where(vector_store_batches.c.store_id == store_id)
    )
    connection.execute(delete(vector_stores).where(vector_stores.c.id == store_id))
    return True


def drop_files(connection: Connection, condition: ColumnElement[bool]) -> int:
    """Deletes rows of files; their chunks are waste then. Returns the number of rows."""
    drop_chunks(connection, condition)
    return connection.execute(delete(vector_store_files).where(condition)).rowcount


def drop_chunks(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Makes the chunks of files waste, and lets them count no more bytes."""
    is_waste = select(vector_store_waste.c.file_number)
    numbers = select(vector_store_files.c.number).where(
        condition, vector_store_files.c.number.not_in(is_waste)
    )
    connection.execute(insert(vector_store_waste).from_select(["file_number"], numbers))
    connection.execute(update(vector_store_files).where(condition).values(usage_bytes=0))


def drop_due(connection: Connection) -> int:
    """Drops the files of expired vector stores, and files whose upload was deleted."""
    has_files = (
        select(vector_store_files.c.number)
        .where(vector_store_files.c.store_id == vector_stores.c.id)
        .exists()
    )
    due = select(vector_stores.c.id).where(is_expired, has_files).limit(_MAX_EXPIRED)
    ids = list(connection.execute(due).scalars())
    num_dropped = drop_files(connection, vector_store_files.c.store_id.in_(ids)) if ids else 0
    gone = select(vector_store_files.c.number).where(~is_present_exists).limit(_MAX_EXPIRED)
    numbers = list(connection.execute(gone).scalars())
    if numbers:
        num_dropped += drop_files(connection, vector_store_files.c.number.in_(numbers))
    return num_dropped
