"""Reads and writes the rows of files and batches; each function runs in a transaction."""

from collections.abc import Sequence
from typing import Any  # rows: their type lists each column

from sqlalchemy import ColumnElement, Connection, and_, func, insert, select, update

from ouzel.store.errors import VectorFileNotFound, VectorStoreExpired, VectorStoreFull
from ouzel.store.tables import unix_now
from ouzel.store.vector_stores.records import (
    CursorRequest,
    FileCounts,
    FileStatus,
    NewVectorFile,
    StoredFileBatch,
    StoredVectorFile,
    VectorFilePage,
)
from ouzel.store.vector_stores.room import SizeLimits, require_room
from ouzel.store.vector_stores.store_rows import (
    count_files,
    drop_chunks,
    drop_files,
    is_present_exists,
    require,
    select_page,
)
from ouzel.store.vector_stores.tables import (
    vector_store_batches,
    vector_store_files,
    vector_stores,
)

_COLUMNS = [vector_store_files.c[name] for name in StoredVectorFile.__struct_fields__]


def add(
    connection: Connection,
    store_id: str,
    key_id: str | None,
    new_files: Sequence[NewVectorFile],
    *,
    batch_id: str | None,
    max_files: int,
    limits: SizeLimits,
) -> list[StoredVectorFile]:
    store = require(connection, store_id, key_id)
    if store.is_expired:
        raise VectorStoreExpired(store_id)
    file_ids = [file.file_id for file in new_files]
    own = vector_store_files.c.store_id == store_id
    drop_files(connection, and_(own, vector_store_files.c.file_id.in_(file_ids)))
    count = select(func.count()).select_from(vector_store_files).where(own)
    num_files = int(connection.execute(count).scalar_one()) + len(new_files)
    if num_files > max_files:
        raise VectorStoreFull(max_files, num_files)
    require_room(connection, limits, key_id, len(new_files))  # each has at least one byte
    if batch_id is not None:
        batch = {"id": batch_id, "store_id": store_id, "key_id": key_id, "is_cancelled": False}
        connection.execute(insert(vector_store_batches).values(**batch, created_at=unix_now()))
    for file in new_files:
        connection.execute(
            insert(vector_store_files).values(
                store_id=store_id,
                key_id=key_id,
                file_id=file.file_id,
                filename=file.filename,
                batch_id=batch_id,
                status=FileStatus.IN_PROGRESS.value,
                attributes=file.attributes,
                strategy=file.strategy,
                usage_bytes=0,
                num_tries=0,
                created_at=unix_now(),
            )
        )
    is_it = vector_stores.c.id == store_id
    connection.execute(update(vector_stores).where(is_it).values(last_active_at=unix_now()))
    added = and_(own, vector_store_files.c.file_id.in_(file_ids))
    query = select(*_COLUMNS).where(added).order_by(vector_store_files.c.number)
    return [_build(row) for row in connection.execute(query)]


def _build(row: Any) -> StoredVectorFile:
    values = dict(row._mapping)
    return StoredVectorFile(**{**values, "status": FileStatus(values["status"])})


def _is_file(store_id: str, file_id: str) -> ColumnElement[bool]:
    return and_(
        vector_store_files.c.store_id == store_id,
        vector_store_files.c.file_id == file_id,
        is_present_exists,
    )


def get(
    connection: Connection, store_id: str, key_id: str | None, file_id: str
) -> StoredVectorFile | None:
    require(connection, store_id, key_id)
    row = connection.execute(select(*_COLUMNS).where(_is_file(store_id, file_id))).one_or_none()
    return None if row is None else _build(row)


def page(
    connection: Connection,
    store_id: str,
    key_id: str | None,
    page: CursorRequest,
    *,
    status: FileStatus | None,
    batch_id: str | None,
) -> VectorFilePage:
    require(connection, store_id, key_id)

    def find_number(file_id: str, param: str) -> int:
        query = select(vector_store_files.c.number).where(_is_file(store_id, file_id))
        number = connection.execute(query).scalar_one_or_none()
        if number is None:
            raise VectorFileNotFound(file_id, param=param)
        return int(number)

    query = select(*_COLUMNS).where(vector_store_files.c.store_id == store_id, is_present_exists)
    if status is not None:
        query = query.where(vector_store_files.c.status == status.value)
    if batch_id is not None:
        query = query.where(vector_store_files.c.batch_id == batch_id)
    after = None if page.after is None else find_number(page.after, "after")
    before = None if page.before is None else find_number(page.before, "before")
    number = vector_store_files.c.number
    rows, has_more = select_page(connection, query, number, page, after=after, before=before)
    return VectorFilePage(tuple(map(_build, rows)), has_more)


def set_attributes(
    connection: Connection, store_id: str, key_id: str | None, file_id: str, attributes: bytes
) -> StoredVectorFile | None:
    if get(connection, store_id, key_id, file_id) is None:
        return None
    is_it = and_(vector_store_files.c.store_id == store_id, vector_store_files.c.file_id == file_id)
    connection.execute(update(vector_store_files).where(is_it).values(attributes=attributes))
    return get(connection, store_id, key_id, file_id)


def remove(connection: Connection, store_id: str, key_id: str | None, file_id: str) -> bool:
    found = get(connection, store_id, key_id, file_id)
    if found is None:
        return False
    drop_files(connection, vector_store_files.c.number == found.number)
    return True


def get_batch(
    connection: Connection, store_id: str, key_id: str | None, batch_id: str
) -> StoredFileBatch | None:
    require(connection, store_id, key_id)
    columns = vector_store_batches.c
    query = select(columns.id, columns.store_id, columns.created_at, columns.is_cancelled)
    row = connection.execute(
        query.where(columns.id == batch_id, columns.store_id == store_id)
    ).one_or_none()
    if row is None:
        return None
    counts, _ = count_files(connection, vector_store_files.c.batch_id, [batch_id])
    return StoredFileBatch(**row._mapping, counts=counts.get(batch_id, FileCounts()))


def cancel_batch(
    connection: Connection, store_id: str, key_id: str | None, batch_id: str
) -> StoredFileBatch | None:
    if get_batch(connection, store_id, key_id, batch_id) is None:
        return None
    runs = and_(
        vector_store_files.c.batch_id == batch_id,
        vector_store_files.c.status == FileStatus.IN_PROGRESS.value,
    )
    drop_chunks(connection, runs)
    connection.execute(
        update(vector_store_files).where(runs).values(status=FileStatus.CANCELLED.value, owner=None)
    )
    is_it = vector_store_batches.c.id == batch_id
    connection.execute(update(vector_store_batches).where(is_it).values(is_cancelled=True))
    return get_batch(connection, store_id, key_id, batch_id)
