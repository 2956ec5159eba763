"""Implements uploads in parts on SQLite or Postgres; `base.py` describes each method."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any  # rows of SQLAlchemy

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ouzel.store.database import Database
from ouzel.store.errors import UploadEnded, UploadNotFound
from ouzel.store.files.records import NewFile, StoredFile
from ouzel.store.files.sql_files import SqlFiles, begin_file, finish_file
from ouzel.store.files.tables import file_parts, files
from ouzel.store.tables import unix_now
from ouzel.store.uploads.records import NewUpload, StoredPart, StoredUpload, UploadStatus
from ouzel.store.uploads.tables import uploads

_KEPT_S = 86400.0  # an upload that has ended is known for so long
_COLUMNS = [uploads.c[name] for name in StoredUpload.__struct_fields__]
_PART_COLUMNS = [file_parts.c[name] for name in StoredPart.__struct_fields__]
_MAX_NAMED = 500  # ids in a query


class SqlUploads:
    def __init__(self, database: Database, stored: SqlFiles) -> None:
        self._database = database
        self._files = stored

    async def create(self, new: NewUpload) -> StoredUpload:
        return await self._database.write(_create, new)

    async def get(self, upload_id: str, key_id: str | None) -> StoredUpload | None:
        return await self._database.read(_get, upload_id, key_id)

    async def finish_part(self, upload_id: str, part_id: str, key_id: str | None) -> StoredPart:
        return await self._database.write(_finish_part, upload_id, part_id, key_id)

    async def parts(self, upload_id: str, part_ids: Sequence[str]) -> list[StoredPart]:
        return await self._database.read(_list_parts, upload_id, part_ids)

    async def read(self, upload_id: str, part_ids: Sequence[str]) -> AsyncGenerator[bytes, None]:
        for part_id in part_ids:
            async for piece in self._files.read_part(part_id, upload_id):
                yield piece

    async def complete(
        self, upload_id: str, key_id: str | None, file_id: str, part_ids: Sequence[str]
    ) -> tuple[StoredUpload, StoredFile]:
        completed = await self._database.write(_complete, upload_id, key_id, file_id, part_ids)
        await self._files.delete_hidden()
        return completed

    async def cancel(self, upload_id: str, key_id: str | None) -> StoredUpload:
        cancelled = await self._database.delete(_cancel, upload_id, key_id)
        await self._files.delete_hidden()
        return cancelled

    async def sweep(self) -> None:
        await self._database.delete(_sweep)


def _create(connection: Connection, new: NewUpload) -> StoredUpload:
    values = {
        "id": new.id,
        "key_id": new.key_id,
        "filename": new.filename,
        "purpose": new.purpose,
        "num_bytes": new.num_bytes,
        "file_expires_after_s": new.file_expires_after_s,
        "status": UploadStatus.PENDING.value,
        "created_at": unix_now(),
        "expires_at": unix_now() + new.expires_after_s,
    }
    return _read(connection.execute(insert(uploads).values(values).returning(*_COLUMNS)).one())


def _get(connection: Connection, upload_id: str, key_id: str | None) -> StoredUpload | None:
    is_own = uploads.c.key_id.is_not_distinct_from(key_id)
    is_late = (uploads.c.status == UploadStatus.PENDING.value) & (
        uploads.c.expires_at <= unix_now()
    )
    query = select(*_COLUMNS, is_late.label("is_late")).where(uploads.c.id == upload_id, is_own)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    fields = row._asdict()
    if fields.pop("is_late"):
        fields["status"] = UploadStatus.EXPIRED
    return _convert(fields)


def _end(
    connection: Connection, upload_id: str, key_id: str | None, status: UploadStatus
) -> StoredUpload:
    """Changes the status of a pending upload, which locks its row; `PENDING` only locks it.

    Raises UploadNotFound and UploadEnded.
    """
    is_pending = (uploads.c.status == UploadStatus.PENDING.value) & (
        uploads.c.expires_at > unix_now()
    )
    changed = (
        update(uploads)
        .where(uploads.c.id == upload_id, uploads.c.key_id.is_not_distinct_from(key_id), is_pending)
        .values(status=status.value)
        .returning(*_COLUMNS)
    )
    row = connection.execute(changed).one_or_none()
    if row is not None:
        return _read(row)
    found = _get(connection, upload_id, key_id)
    if found is None:
        raise UploadNotFound(upload_id)
    raise UploadEnded(upload_id, found.status.value)


def _finish_part(
    connection: Connection, upload_id: str, part_id: str, key_id: str | None
) -> StoredPart:
    _end(connection, upload_id, key_id, UploadStatus.PENDING)
    query = select(files.c.size_bytes).where(files.c.id == part_id, files.c.is_hidden.is_(False))
    num_bytes = connection.execute(query).scalar_one_or_none()
    if num_bytes is None:
        raise UploadNotFound(upload_id)
    values = {
        "id": part_id,
        "upload_id": upload_id,
        "key_id": key_id,
        "num_bytes": num_bytes,
        "created_at": unix_now(),
    }
    added = insert(file_parts).values(values).returning(*_PART_COLUMNS)
    return StoredPart(**connection.execute(added).one()._asdict())


def _list_parts(
    connection: Connection, upload_id: str, part_ids: Sequence[str]
) -> list[StoredPart]:
    found: list[StoredPart] = []
    for first in range(0, len(part_ids), _MAX_NAMED):
        some = part_ids[first : first + _MAX_NAMED]
        is_named = (file_parts.c.upload_id == upload_id) & file_parts.c.id.in_(some)
        rows = connection.execute(select(*_PART_COLUMNS).where(is_named))
        found += [StoredPart(**row._asdict()) for row in rows]
    return found


def _complete(
    connection: Connection,
    upload_id: str,
    key_id: str | None,
    file_id: str,
    part_ids: Sequence[str],
) -> tuple[StoredUpload, StoredFile]:
    upload = _end(connection, upload_id, key_id, UploadStatus.COMPLETED)
    begin_file(connection, NewFile(id=file_id, key_id=key_id, filename=upload.filename))
    for position, part_id in enumerate(part_ids):
        is_part = (file_parts.c.id == part_id) & (file_parts.c.upload_id == upload_id)
        values = {"file_id": file_id, "position": position}
        connection.execute(update(file_parts).where(is_part).values(values))
    of_file = select(file_parts.c.id).where(file_parts.c.file_id == file_id)
    total = select(func.coalesce(func.sum(file_parts.c.num_bytes), 0)).where(
        file_parts.c.file_id == file_id
    )
    # The file counts for the limit of all files, instead of its parts.
    connection.execute(update(files).where(files.c.id.in_(of_file)).values(size_bytes=0))
    connection.execute(
        update(files).where(files.c.id == file_id).values(size_bytes=total.scalar_subquery())
    )
    _hide_parts(connection, upload_id)
    after_s = select(uploads.c.file_expires_after_s).where(uploads.c.id == upload_id)
    lifetime_s = connection.execute(after_s).scalar_one()
    return upload, finish_file(connection, file_id, upload.purpose, lifetime_s)


def _cancel(connection: Connection, upload_id: str, key_id: str | None) -> StoredUpload:
    cancelled = _end(connection, upload_id, key_id, UploadStatus.CANCELLED)
    _hide_parts(connection, upload_id)
    return cancelled


def _sweep(connection: Connection) -> None:
    is_due = (uploads.c.status == UploadStatus.PENDING.value) & (uploads.c.expires_at <= unix_now())
    changed = update(uploads).where(is_due).values(status=UploadStatus.EXPIRED.value)
    for upload_id in connection.execute(changed.returning(uploads.c.id)).scalars().all():
        _hide_parts(connection, upload_id)
    connection.execute(
        delete(uploads).where(
            uploads.c.status != UploadStatus.PENDING.value,
            uploads.c.expires_at <= unix_now() - _KEPT_S,
        )
    )


def _hide_parts(connection: Connection, upload_id: str) -> None:
    """Hides the parts of an upload that are in no file; their pieces go in further transactions."""
    left = select(file_parts.c.id).where(
        file_parts.c.upload_id == upload_id, file_parts.c.file_id.is_(None)
    )
    connection.execute(update(files).where(files.c.id.in_(left)).values(is_hidden=True))


def _read(row: Row[Any]) -> StoredUpload:
    return _convert(row._asdict())


def _convert(fields: dict[str, Any]) -> StoredUpload:
    return StoredUpload(**{**fields, "status": UploadStatus(fields["status"])})
