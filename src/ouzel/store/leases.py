"""Each unfinished response is owned by one server, and each server has a lease.

A server whose lease has ended counts as dead: any other server may take its responses. A server
that was only slow notices the loss when `record` returns False for a response that another server
took.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, update

from ouzel.store.records import Status, StoredResponse
from ouzel.store.responses import COLUMNS, build_response
from ouzel.store.tables import RUNNING, responses, servers, unix_now

_FORGET_S = 3600.0  # delete rows of servers that have been dead for so long
_MAX_TAKEN = 1000  # the most responses to take in one transaction


def now(connection: Connection) -> float:
    """Returns seconds since 1970, by the database's clock."""
    return float(connection.execute(select(unix_now())).scalar_one())


def renew(connection: Connection, server_id: str, lease_s: float) -> None:
    expires_at = unix_now() + lease_s
    renewed = update(servers).where(servers.c.id == server_id).values(expires_at=expires_at)
    if not connection.execute(renewed).rowcount:
        connection.execute(insert(servers).values(id=server_id, expires_at=expires_at))
        connection.execute(delete(servers).where(servers.c.expires_at < unix_now() - _FORGET_S))


def end(connection: Connection, server_id: str) -> None:
    connection.execute(delete(servers).where(servers.c.id == server_id))


def take_abandoned(connection: Connection, server_id: str, lease_s: float) -> list[StoredResponse]:
    """Takes responses in progress, and queued responses that cannot run for lack of a request."""
    cannot_run = (responses.c.status == Status.QUEUED.value) & responses.c.request.is_(None)
    return _take(
        connection,
        server_id,
        lease_s,
        or_(responses.c.status == Status.IN_PROGRESS.value, cannot_run),
        limit=None,
    )


def take_queued(
    connection: Connection, server_id: str, lease_s: float, models: Sequence[str], limit: int
) -> list[StoredResponse]:
    is_queued = (responses.c.status == Status.QUEUED.value) & responses.c.request.is_not(None)
    return _take(
        connection,
        server_id,
        lease_s,
        is_queued & responses.c.model.in_(models),
        limit=min(limit, _MAX_TAKEN),
    )


def _take(
    connection: Connection,
    server_id: str,
    lease_s: float,
    condition: ColumnElement[bool],
    limit: int | None,
) -> list[StoredResponse]:
    """Takes unfinished responses of dead servers or without an owner, oldest first.

    If two servers do this at once, each skips the rows that the other has locked (Postgres), or
    one waits for the other (SQLite). A server takes no response of its own: its lease may have
    ended although it lives, because the clock was set forward or the machine slept.
    """
    alive = select(servers.c.id).where(servers.c.expires_at > unix_now())
    query = (
        select(*COLUMNS)
        .where(
            responses.c.status.in_(RUNNING),
            condition,
            or_(
                responses.c.owner.is_(None),
                responses.c.owner.not_in(alive) & (responses.c.owner != server_id),
            ),
        )
        .order_by(responses.c.created_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    orphans = [build_response(row) for row in connection.execute(query)]
    if orphans:
        renew(connection, server_id, lease_s)
        ids = [response.id for response in orphans]
        connection.execute(update(responses).where(responses.c.id.in_(ids)).values(owner=server_id))
    return orphans


def release(connection: Connection, server_id: str, ids: Collection[str]) -> None:
    connection.execute(
        update(responses)
        .where(
            responses.c.id.in_(ids), responses.c.owner == server_id, responses.c.status.in_(RUNNING)
        )
        .values(owner=None)
    )


def ended(connection: Connection, ids: Collection[str]) -> set[str]:
    running = select(responses.c.id).where(responses.c.id.in_(ids), responses.c.status.in_(RUNNING))
    return set(ids) - set(connection.execute(running).scalars())
