"""Implements stored files on SQLite or Postgres; `base.py` describes each method."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any  # rows of SQLAlchemy

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from ouzel.store.database import Database
from ouzel.store.errors import FileNotFound, FilesFull
from ouzel.store.files.records import FilePage, NewFile, StoredFile
from ouzel.store.files.tables import file_parts, file_pieces, files, is_visible
from ouzel.store.records import PageRequest
from ouzel.store.tables import unix_now

_MAX_DELETED = 16  # pieces per transaction, so that other transactions run in between
_BROKEN_S = 86400.0  # an upload without a new piece for so long has broken off
_COLUMNS = [files.c[name] for name in StoredFile.__struct_fields__]
_ADD_PIECE = insert(file_pieces)
_ADVISORY_LOCK = 0x66696C6573  # "files"


class SqlFiles:
    def __init__(self, database: Database, max_bytes: int) -> None:
        """`max_bytes` limits all files together."""
        self._database = database
        self._max_bytes = max_bytes

    async def begin(self, new: NewFile) -> None:
        await self._database.write(begin_file, new)

    async def add_piece(self, file_id: str, number: int, data: bytes) -> None:
        await self._database.write(_add_piece, file_id, number, data, self._max_bytes)

    async def finish(
        self, file_id: str, purpose: str, expires_after_s: float | None = None
    ) -> StoredFile:
        return await self._database.write(finish_file, file_id, purpose, expires_after_s)

    async def drop(self, file_id: str) -> None:
        await self._database.delete(_hide, file_id)
        await self.delete_hidden()

    async def get(self, file_id: str, key_id: str | None) -> StoredFile | None:
        return await self._database.read(_get, file_id, key_id)

    async def page(self, key_id: str | None, purpose: str | None, page: PageRequest) -> FilePage:
        return await self._database.read(_page, key_id, purpose, page)

    async def read(
        self, file_id: str, key_id: str | None, first: int = 0
    ) -> AsyncGenerator[bytes, None]:
        is_readable = (files.c.id == file_id) & _belongs_to_key(key_id) & is_visible
        place = await self._database.read(_find_place, file_id, first)
        skip, number = place.skip, place.number
        for owner_id in place.owner_ids:
            async for piece in self._read_pieces(owner_id, is_readable, file_id, number):
                yield piece[skip:]
                skip = 0
            number = 0

    async def read_part(self, part_id: str, upload_id: str) -> AsyncGenerator[bytes, None]:
        """Yields the content of a part of an upload. Raises FileNotFound."""
        own = select(file_parts.c.id).where(file_parts.c.upload_id == upload_id)
        is_readable = (files.c.id == part_id) & files.c.id.in_(own) & files.c.is_hidden.is_(False)
        async for piece in self._read_pieces(part_id, is_readable, part_id):
            yield piece

    async def _read_pieces(
        self, owner_id: str, is_readable: ColumnElement[bool], file_id: str, number: int = 0
    ) -> AsyncGenerator[bytes, None]:
        is_last = False
        while not is_last:
            data, is_last = await self._database.read(
                _read_piece, owner_id, number, is_readable, file_id
            )
            if data:
                yield data
            number += 1

    async def delete(self, file_id: str, key_id: str | None) -> bool:
        is_deleted = await self._database.delete(_delete, file_id, key_id)
        await self.delete_hidden()
        return is_deleted

    async def sweep(self) -> int:
        await self._database.delete(_hide_due)
        return await self.delete_hidden()

    async def delete_hidden(self) -> int:
        """Deletes the pieces of hidden files, a few in each transaction; returns their number."""
        num_deleted = 0
        while num := await self._database.delete(_delete_pieces):
            num_deleted += num
        return num_deleted


def _belongs_to_key(key_id: str | None) -> ColumnElement[bool]:
    return files.c.key_id.is_not_distinct_from(key_id)


def begin_file(connection: Connection, new: NewFile) -> None:
    connection.execute(
        insert(files).values(
            id=new.id,
            key_id=new.key_id,
            filename=new.filename,
            purpose="",
            size_bytes=0,
            is_complete=False,
            is_hidden=False,
            created_at=unix_now(),
            touched_at=unix_now(),
        )
    )


def _add_piece(
    connection: Connection, file_id: str, number: int, data: bytes, max_bytes: int
) -> None:
    if connection.dialect.name == "postgresql":  # two sums at once would both find room
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    held = select(func.coalesce(func.sum(files.c.size_bytes), 0))
    if int(connection.execute(held).scalar_one()) + len(data) > max_bytes:
        raise FilesFull(max_bytes)
    changed = (
        update(files)
        .where(files.c.id == file_id, files.c.is_complete.is_(False), files.c.is_hidden.is_(False))
        .values(size_bytes=files.c.size_bytes + len(data), touched_at=unix_now())
    )
    if not connection.execute(changed).rowcount:
        raise FileNotFound(file_id)
    connection.execute(_ADD_PIECE, {"file_id": file_id, "number": number, "data": data})


def finish_file(
    connection: Connection, file_id: str, purpose: str, expires_after_s: float | None
) -> StoredFile:
    """Makes a file visible. Raises FileNotFound."""
    expires_at = None if expires_after_s is None else unix_now() + expires_after_s
    values = {"is_complete": True, "purpose": purpose, "expires_at": expires_at}
    is_open = files.c.is_complete.is_(False) & files.c.is_hidden.is_(False)
    changed = update(files).where(files.c.id == file_id, is_open).values(values)
    row = connection.execute(changed.returning(*_COLUMNS)).one_or_none()
    if row is None:
        raise FileNotFound(file_id)
    return _read(row)


def _get(connection: Connection, file_id: str, key_id: str | None) -> StoredFile | None:
    query = select(*_COLUMNS).where(files.c.id == file_id, _belongs_to_key(key_id), is_visible)
    row = connection.execute(query).one_or_none()
    return None if row is None else _read(row)


def _read(row: Row[Any]) -> StoredFile:
    return StoredFile(**row._asdict())


def _page(
    connection: Connection, key_id: str | None, purpose: str | None, page: PageRequest
) -> FilePage:
    query = select(*_COLUMNS).where(_belongs_to_key(key_id), is_visible)
    if purpose is not None:
        query = query.where(files.c.purpose == purpose)
    if page.after is not None:
        own = select(files.c.number).where(files.c.id == page.after, _belongs_to_key(key_id))
        number = connection.execute(own).scalar_one_or_none()
        if number is None:
            raise FileNotFound(page.after, param="after")
        is_behind = files.c.number > number if page.is_ascending else files.c.number < number
        query = query.where(is_behind)
    order = files.c.number.asc() if page.is_ascending else files.c.number.desc()
    rows = connection.execute(query.order_by(order).limit(page.limit + 1)).all()
    return FilePage(tuple(map(_read, rows[: page.limit])), len(rows) > page.limit)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a file from which it is read."""

    owner_ids: list[str]  # the parts from there on; the file itself, if it was uploaded whole
    number: int  # the piece of the first owner
    skip: int  # bytes of the piece before the place


def _find_place(connection: Connection, file_id: str, first: int) -> _Place:
    query = select(file_parts.c.id, file_parts.c.num_bytes).where(file_parts.c.file_id == file_id)
    parts = list(connection.execute(query.order_by(file_parts.c.position)))
    while len(parts) > 1 and first >= parts[0].num_bytes:
        first -= parts.pop(0).num_bytes
    owner_ids = [part.id for part in parts] or [file_id]
    number = 0
    if first > 0:
        sizes = select(func.length(file_pieces.c.data)).where(file_pieces.c.file_id == owner_ids[0])
        for size in connection.execute(sizes.order_by(file_pieces.c.number)).scalars():
            if first < size:
                break
            first -= size
            number += 1
    return _Place(owner_ids, number, first)


def _read_piece(
    connection: Connection,
    owner_id: str,
    number: int,
    is_readable: ColumnElement[bool],
    file_id: str,
) -> tuple[bytes, bool]:
    """Returns a piece of a file or part, and whether it is the last one."""
    if connection.execute(select(files.c.id).where(is_readable)).one_or_none() is None:
        raise FileNotFound(file_id)
    query = select(file_pieces.c.data).where(
        file_pieces.c.file_id == owner_id, file_pieces.c.number.in_((number, number + 1))
    )
    found = connection.execute(query.order_by(file_pieces.c.number)).scalars().all()
    return (bytes(found[0]) if found else b""), len(found) < 2


def _delete(connection: Connection, file_id: str, key_id: str | None) -> bool:
    if _get(connection, file_id, key_id) is None:
        return False
    _hide(connection, file_id)
    return True


def _hide(connection: Connection, file_id: str) -> None:
    """Makes a file and its parts invisible at once; the pieces go in further transactions."""
    parts = select(file_parts.c.id).where(file_parts.c.file_id == file_id)
    is_due = or_(files.c.id == file_id, files.c.id.in_(parts))
    connection.execute(update(files).where(is_due).values(is_hidden=True))


def _hide_due(connection: Connection) -> None:
    used = select(file_parts.c.id).where(file_parts.c.file_id.is_not(None))
    is_old = files.c.is_complete.is_(False) & (files.c.touched_at < unix_now() - _BROKEN_S)
    is_due = or_(files.c.expires_at <= unix_now(), is_old & files.c.id.not_in(used))
    query = select(files.c.id).where(is_due, files.c.is_hidden.is_(False))
    for file_id in connection.execute(query).scalars().all():
        _hide(connection, file_id)


def _delete_pieces(connection: Connection) -> int:
    """Deletes some pieces of hidden files, or a hidden file without pieces; returns the number."""
    hidden = select(files.c.id).where(files.c.is_hidden).limit(1)
    file_id = connection.execute(hidden).scalar_one_or_none()
    if file_id is None:
        return 0
    query = select(file_pieces.c.number).where(file_pieces.c.file_id == file_id)
    numbers = list(connection.execute(query.limit(_MAX_DELETED)).scalars())
    of_file = file_pieces.c.file_id == file_id
    connection.execute(delete(file_pieces).where(of_file, file_pieces.c.number.in_(numbers)))
    if len(numbers) < _MAX_DELETED:
        connection.execute(delete(files).where(files.c.id == file_id))
        connection.execute(delete(file_parts).where(file_parts.c.id == file_id))
    return max(len(numbers), 1)
