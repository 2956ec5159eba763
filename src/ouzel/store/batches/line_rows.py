"""Reads and writes the lines of batches; each function runs in a transaction."""

from collections import Counter
from collections.abc import Collection, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from ouzel.store.batches.records import (
    BatchStatus,
    Line,
    LineEnd,
    LineResult,
    LineUsage,
    NewLine,
    StoredResult,
)
from ouzel.store.batches.tables import batch_lines, batches
from ouzel.store.leases import renew
from ouzel.store.tables import servers, unix_now

_COUNTS = {
    LineEnd.SUCCEEDED: "num_succeeded",
    LineEnd.ERRORED: "num_errored",
    LineEnd.CANCELLED: "num_cancelled",
    LineEnd.EXPIRED: "num_expired",
}


def add(
    connection: Connection,
    batch_id: str,
    key_id: str | None,
    first: int,
    lines: Sequence[NewLine],
) -> None:
    if lines:
        connection.execute(
            insert(batch_lines),
            [
                {
                    "batch_id": batch_id,
                    "position": first + index,
                    "key_id": key_id,
                    "custom_id": line.custom_id,
                    "body": line.body,
                }
                for index, line in enumerate(lines)
            ],
        )


def add_to_validated(
    connection: Connection, server_id: str, batch_id: str, first: int, lines: Sequence[NewLine]
) -> bool:
    owned = connection.execute(
        select(batches.c.key_id)
        .where(
            batches.c.id == batch_id,
            batches.c.owner == server_id,
            batches.c.status == BatchStatus.VALIDATING.value,
        )
        .with_for_update()
    ).one_or_none()
    if owned is None:
        return False
    add(connection, batch_id, owned.key_id, first, lines)
    return True


def clear(connection: Connection, batch_id: str) -> None:
    connection.execute(delete(batch_lines).where(batch_lines.c.batch_id == batch_id))


def _open(batch_id: str) -> ColumnElement[bool]:
    return and_(batch_lines.c.batch_id == batch_id, batch_lines.c.end.is_(None))


def _of_dead(server_id: str) -> ColumnElement[bool]:
    alive = select(servers.c.id).where(servers.c.expires_at > unix_now())
    return and_(batch_lines.c.owner.not_in(alive), batch_lines.c.owner != server_id)


def take(
    connection: Connection,
    server_id: str,
    lease_s: float,
    batch_id: str,
    limit: int,
    *,
    takes_dead: bool,
) -> list[Line]:
    """Takes lines without an owner, then lines of dead servers if `takes_dead`.

    A batch that is cancelled meanwhile gives no lines: its row is locked first.
    """
    is_running = connection.execute(
        select(batches.c.id)
        .where(
            batches.c.id == batch_id,
            batches.c.status == BatchStatus.IN_PROGRESS.value,
            batches.c.expires_at > unix_now(),
        )
        .with_for_update(read=True)
    ).one_or_none()
    if is_running is None:
        return []
    is_free = batch_lines.c.owner.is_(None)
    query = (
        select(batch_lines.c.position, batch_lines.c.custom_id, batch_lines.c.body)
        .where(_open(batch_id), or_(is_free, _of_dead(server_id)) if takes_dead else is_free)
        .order_by(batch_lines.c.position)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    lines = [Line(*row) for row in connection.execute(query)]
    if lines:
        renew(connection, server_id, lease_s)
        connection.execute(
            update(batch_lines)
            .where(
                batch_lines.c.batch_id == batch_id,
                batch_lines.c.position.in_([line.position for line in lines]),
            )
            .values(owner=server_id)
        )
    return lines


def finish(
    connection: Connection, server_id: str, batch_id: str, results: Sequence[LineResult]
) -> int:
    """Writes the results of the lines that this server owns, and counts them in the batch."""
    owned = set(
        connection.execute(
            select(batch_lines.c.position)
            .where(
                _open(batch_id),
                batch_lines.c.owner == server_id,
                batch_lines.c.position.in_([result.position for result in results]),
            )
            .with_for_update()
        ).scalars()
    )
    written = [result for result in results if result.position in owned]
    if not written:
        return 0
    connection.execute(
        update(batch_lines)
        .where(
            batch_lines.c.batch_id == batch_id,
            batch_lines.c.position == bindparam("at"),
        )
        .values(end=bindparam("how"), result=bindparam("text"), owner=None),
        [
            {"at": result.position, "how": result.end.value, "text": result.result}
            for result in written
        ],
    )
    _count(
        connection,
        batch_id,
        Counter(result.end for result in written),
        [result.usage for result in written],
    )
    return len(written)


def _count(
    connection: Connection,
    batch_id: str,
    ends: Counter[LineEnd],
    usages: Sequence[LineUsage] = (),
) -> None:
    values = {_COUNTS[end]: batches.c[_COUNTS[end]] + number for end, number in ends.items()}
    for name in LineUsage.__struct_fields__ if usages else ():
        values[name] = batches.c[name] + sum(getattr(usage, name) for usage in usages)
    connection.execute(update(batches).where(batches.c.id == batch_id).values(values))


def release(
    connection: Connection, server_id: str, batch_id: str, positions: Collection[int]
) -> None:
    connection.execute(
        update(batch_lines)
        .where(
            _open(batch_id),
            batch_lines.c.owner == server_id,
            batch_lines.c.position.in_(list(positions)),
        )
        .values(owner=None)
    )


def keep(connection: Connection, server_id: str, batch_id: str, positions: Collection[int]) -> None:
    """Releases all lines of this server at other positions."""
    connection.execute(
        update(batch_lines)
        .where(
            _open(batch_id),
            batch_lines.c.owner == server_id,
            batch_lines.c.position.not_in(list(positions)),
        )
        .values(owner=None)
    )


def end_open(
    connection: Connection, server_id: str, batch_id: str, end: LineEnd, *, takes_dead: bool
) -> int:
    is_free = or_(batch_lines.c.owner.is_(None), batch_lines.c.owner == server_id)
    ended = connection.execute(
        update(batch_lines)
        .where(_open(batch_id), or_(is_free, _of_dead(server_id)) if takes_dead else is_free)
        .values(end=end.value, owner=None)
    )
    if ended.rowcount:
        _count(connection, batch_id, Counter({end: ended.rowcount}))
    left = select(func.count()).where(_open(batch_id))
    return int(connection.execute(left).scalar_one())


def results(
    connection: Connection, batch_id: str, after: int, limit: int, ends: Collection[LineEnd]
) -> list[StoredResult]:
    query = (
        select(
            batch_lines.c.position,
            batch_lines.c.custom_id,
            batch_lines.c.end,
            batch_lines.c.result,
        )
        .where(batch_lines.c.batch_id == batch_id, batch_lines.c.position > after)
        .order_by(batch_lines.c.position)
        .limit(limit)
    )
    if ends:
        query = query.where(batch_lines.c.end.in_([end.value for end in ends]))
    else:
        query = query.where(batch_lines.c.end.is_not(None))
    return [
        StoredResult(row.position, row.custom_id, LineEnd(row.end), row.result)
        for row in connection.execute(query)
    ]
