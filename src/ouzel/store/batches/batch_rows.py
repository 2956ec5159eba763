"""Reads and writes the rows of batches; each function runs in a transaction."""

from collections.abc import Collection, Sequence
from typing import Any  # rows: their type lists each column

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from ouzel.store.batches import line_rows
from ouzel.store.batches.records import (
    FINAL,
    BatchPage,
    BatchPageRequest,
    BatchStatus,
    Dialect,
    LineUsage,
    NewBatch,
    NewLine,
    StoredBatch,
)
from ouzel.store.batches.tables import batch_lines, batches
from ouzel.store.files.sql_files import finish_file
from ouzel.store.leases import renew
from ouzel.store.tables import servers, unix_now

_OUTPUT_PURPOSE = "batch_output"
_FINAL = [status.value for status in FINAL]
_USAGE = tuple(LineUsage.__struct_fields__)
_MAX_SWEPT = 100


def _build(row: Any) -> StoredBatch:
    values = dict(row._mapping)
    usage = LineUsage(**{name: values.pop(name) for name in _USAGE})
    del values["owner"]
    status = BatchStatus(values.pop("status"))
    is_overdue = bool(values.pop("is_overdue"))
    return StoredBatch(**values, status=status, usage=usage, is_overdue=is_overdue)


_QUERY = select(*batches.c, (batches.c.expires_at <= unix_now()).label("is_overdue"))


def add(
    connection: Connection, new: NewBatch, lines: Sequence[NewLine], model: str | None
) -> StoredBatch:
    now_s = float(connection.execute(select(unix_now())).scalar_one())
    status = BatchStatus.IN_PROGRESS if lines else BatchStatus.VALIDATING
    counts = ("num_succeeded", "num_errored", "num_cancelled", "num_expired", *_USAGE)
    connection.execute(
        insert(batches).values(
            id=new.id,
            key_id=new.key_id,
            dialect=new.dialect,
            endpoint=new.endpoint,
            input_file_id=new.input_file_id,
            window_s=new.window_s,
            metadata=new.metadata,
            output_expires_after_s=new.output_expires_after_s,
            status=status.value,
            model=model,
            num_lines=len(lines),
            created_at=now_s,
            in_progress_at=now_s if lines else None,
            expires_at=now_s + new.window_s,
            **dict.fromkeys(counts, 0),
        )
    )
    line_rows.add(connection, new.id, new.key_id, 0, lines)
    return _build(connection.execute(_QUERY.where(batches.c.id == new.id)).one())


def _of_key(batch_id: str, key_id: str | None, dialect: Dialect) -> ColumnElement[bool]:
    return and_(
        batches.c.id == batch_id,
        batches.c.key_id.is_not_distinct_from(key_id),
        batches.c.dialect == dialect,
    )


def get(
    connection: Connection, batch_id: str, key_id: str | None, dialect: Dialect
) -> StoredBatch | None:
    row = connection.execute(_QUERY.where(_of_key(batch_id, key_id, dialect))).one_or_none()
    return None if row is None else _build(row)


def page(
    connection: Connection, key_id: str | None, dialect: Dialect, page: BatchPageRequest
) -> BatchPage | None:
    query = _QUERY.where(
        batches.c.key_id.is_not_distinct_from(key_id), batches.c.dialect == dialect
    )
    order = (batches.c.created_at.desc(), batches.c.id.desc())
    for name, is_older in ((page.after, True), (page.before, False)):
        if name is None:
            continue
        border = get(connection, name, key_id, dialect)
        if border is None:
            return None
        at_s, border_id = batches.c.created_at, batches.c.id
        if is_older:
            query = query.where(
                or_(
                    at_s < border.created_at,
                    and_(at_s == border.created_at, border_id < border.id),
                )
            )
        else:
            query = query.where(
                or_(
                    at_s > border.created_at,
                    and_(at_s == border.created_at, border_id > border.id),
                )
            )
            order = (batches.c.created_at.asc(), batches.c.id.asc())
    rows = connection.execute(query.order_by(*order).limit(page.limit + 1)).all()
    found = [_build(row) for row in rows[: page.limit]]
    if page.before is not None:
        found.reverse()
    return BatchPage(tuple(found), has_more=len(rows) > page.limit)


def count_unfinished(connection: Connection, key_id: str | None) -> int:
    query = select(func.count()).where(
        batches.c.key_id.is_not_distinct_from(key_id), batches.c.status.not_in(_FINAL)
    )
    return int(connection.execute(query).scalar_one())


def cancel(
    connection: Connection, batch_id: str, key_id: str | None, dialect: Dialect
) -> StoredBatch | None:
    connection.execute(
        update(batches)
        .where(
            _of_key(batch_id, key_id, dialect),
            batches.c.status.in_([BatchStatus.VALIDATING.value, BatchStatus.IN_PROGRESS.value]),
        )
        .values(status=BatchStatus.CANCELLING.value, cancelling_at=unix_now(), owner=None)
    )
    return get(connection, batch_id, key_id, dialect)


def remove(connection: Connection, batch_id: str, key_id: str | None, dialect: Dialect) -> bool:
    deleted = connection.execute(
        delete(batches).where(_of_key(batch_id, key_id, dialect), batches.c.status.in_(_FINAL))
    ).rowcount
    if deleted:
        line_rows.clear(connection, batch_id)
    return bool(deleted)


def unfinished(connection: Connection) -> list[StoredBatch]:
    query = _QUERY.where(batches.c.status.not_in(_FINAL)).order_by(
        batches.c.created_at, batches.c.id
    )
    return [_build(row) for row in connection.execute(query)]


def claim(
    connection: Connection,
    server_id: str,
    lease_s: float,
    batch_id: str,
    statuses: Collection[BatchStatus],
    *,
    takes_dead: bool,
) -> bool:
    renew(connection, server_id, lease_s)
    alive = select(servers.c.id).where(servers.c.expires_at > unix_now())
    free = [batches.c.owner.is_(None), batches.c.owner == server_id]
    if takes_dead:
        free.append(batches.c.owner.not_in(alive))
    claimed = connection.execute(
        update(batches)
        .where(
            batches.c.id == batch_id,
            batches.c.status.in_([status.value for status in statuses]),
            or_(*free),
        )
        .values(owner=server_id)
    )
    return bool(claimed.rowcount)


def clear_lines(connection: Connection, server_id: str, batch_id: str) -> None:
    """Deletes the lines of a batch that this server owns."""
    is_ours = select(batches.c.id).where(_owned(batch_id, server_id)).with_for_update()
    if connection.execute(is_ours).one_or_none() is not None:
        line_rows.clear(connection, batch_id)


def start(
    connection: Connection, server_id: str, batch_id: str, model: str, num_lines: int
) -> bool:
    started = connection.execute(
        update(batches)
        .where(_owned(batch_id, server_id), batches.c.status == BatchStatus.VALIDATING.value)
        .values(
            status=BatchStatus.IN_PROGRESS.value,
            owner=None,
            model=model,
            num_lines=num_lines,
            in_progress_at=unix_now(),
        )
    )
    return bool(started.rowcount)


def fail(connection: Connection, server_id: str, batch_id: str, errors: bytes) -> bool:
    failed = connection.execute(
        update(batches)
        .where(_owned(batch_id, server_id), batches.c.status == BatchStatus.VALIDATING.value)
        .values(status=BatchStatus.FAILED.value, owner=None, errors=errors, failed_at=unix_now())
    )
    if failed.rowcount:
        line_rows.clear(connection, batch_id)
    return bool(failed.rowcount)


def begin_finalizing(connection: Connection, server_id: str, lease_s: float, batch_id: str) -> bool:
    still_open = select(batch_lines.c.batch_id).where(
        batch_lines.c.batch_id == batch_id, batch_lines.c.end.is_(None)
    )
    renew(connection, server_id, lease_s)
    begun = connection.execute(
        update(batches)
        .where(
            batches.c.id == batch_id,
            batches.c.status == BatchStatus.IN_PROGRESS.value,
            ~still_open.exists(),
        )
        .values(status=BatchStatus.FINALIZING.value, owner=server_id, finalizing_at=unix_now())
    )
    return bool(begun.rowcount)


_TIMES = {
    BatchStatus.COMPLETED: "completed_at",
    BatchStatus.EXPIRED: "expired_at",
    BatchStatus.CANCELLED: "cancelled_at",
}


def close(
    connection: Connection,
    server_id: str,
    batch_id: str,
    status: BatchStatus,
    file_ids: tuple[str | None, str | None],
    *,
    keeps_lines: bool,
) -> bool:
    """Ends a batch; `file_ids` are the files with the output and with the errors.

    The files become visible in the same transaction.
    """
    closed = connection.execute(
        update(batches)
        .where(_owned(batch_id, server_id), batches.c.status.not_in(_FINAL))
        .values(
            {
                "status": status.value,
                "owner": None,
                "output_file_id": file_ids[0],
                "error_file_id": file_ids[1],
                _TIMES[status]: unix_now(),
            }
        )
        .returning(batches.c.output_expires_after_s)
    ).one_or_none()
    if closed is None:
        return False
    for file_id in file_ids:
        if file_id is not None:
            finish_file(connection, file_id, _OUTPUT_PURPOSE, closed.output_expires_after_s)
    if not keeps_lines:
        line_rows.clear(connection, batch_id)
    return True


def delete_old(connection: Connection, max_age_s: float) -> int:
    """Deletes some batches that ended too long ago; returns their number."""
    ended_at = func.coalesce(*(batches.c[name] for name in (*_TIMES.values(), "failed_at")))
    old = connection.execute(
        select(batches.c.id)
        .where(batches.c.status.in_(_FINAL), ended_at < unix_now() - max_age_s)
        .limit(_MAX_SWEPT)
    ).scalars()
    ids = list(old)
    for batch_id in ids:
        line_rows.clear(connection, batch_id)
    connection.execute(delete(batches).where(batches.c.id.in_(ids)))
    return len(ids)


def _owned(batch_id: str, server_id: str) -> ColumnElement[bool]:
    return and_(batches.c.id == batch_id, batches.c.owner == server_id)
