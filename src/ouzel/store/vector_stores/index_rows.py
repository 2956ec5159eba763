"""Reads and writes chunks and vectors; each function runs in a transaction."""

from collections.abc import Collection, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from ouzel.store.leases import renew
from ouzel.store.tables import servers, unix_now
from ouzel.store.vector_stores import word_index
from ouzel.store.vector_stores.records import (
    ChunkPlace,
    ErrorCode,
    FileStatus,
    IndexJob,
    NewChunk,
    SearchedFile,
    StoredChunk,
    VectorPart,
)
from ouzel.store.vector_stores.room import SizeLimits, require_room
from ouzel.store.vector_stores.store_rows import drop_chunks, is_expired, is_present_exists
from ouzel.store.vector_stores.tables import (
    vector_store_chunks,
    vector_store_files,
    vector_store_vectors,
    vector_store_waste,
    vector_stores,
)

_MAX_FREED = 256  # chunks in one transaction, so that other transactions run in between
_MANY = 500  # values of one IN
_RUNS = vector_store_files.c.status == FileStatus.IN_PROGRESS.value
_IS_READY = vector_store_files.c.status == FileStatus.COMPLETED.value
_CHUNK = [vector_store_chunks.c[name] for name in StoredChunk.__struct_fields__]


def take_job(
    connection: Connection, server_id: str, lease_s: float, *, takes_dead: bool
) -> IndexJob | None:
    alive = select(servers.c.id).where(servers.c.expires_at > unix_now())
    owner = vector_store_files.c.owner
    # A server runs one job at a time: a file of its own is left over from a fault of the database.
    is_free = or_(owner.is_(None), owner == server_id)
    if takes_dead:
        is_free = or_(is_free, owner.not_in(alive))
    found = connection.execute(
        select(*vector_store_files.c, vector_stores.c.model)
        .join(vector_stores, vector_stores.c.id == vector_store_files.c.store_id)
        .where(_RUNS, is_free, is_present_exists, ~is_expired)
        .order_by(vector_store_files.c.number)
        .limit(1)
        .with_for_update(skip_locked=True, of=vector_store_files)
    ).one_or_none()
    if found is None:
        return None
    renew(connection, server_id, lease_s)
    is_it = vector_store_files.c.number == found.number
    # Only a killed server leaves a try that counts: this server lives.
    num_tries = found.num_tries + (found.owner != server_id)
    connection.execute(
        update(vector_store_files)
        .where(is_it)
        .values(owner=server_id, num_tries=num_tries, usage_bytes=0)
    )
    _free(connection, found.number, limit=None)
    values = {
        name: found._mapping[name] for name in IndexJob.__struct_fields__ if name != "num_tries"
    }
    return IndexJob(**values, num_tries=num_tries)


def has_jobs(connection: Connection) -> bool:
    """Tells whether any file is in progress, without a lock."""
    query = select(vector_store_files.c.number).where(_RUNS).limit(1)
    return connection.execute(query).one_or_none() is not None


def _is_owned(file_number: int, server_id: str) -> ColumnElement[bool]:
    return and_(
        vector_store_files.c.number == file_number,
        vector_store_files.c.owner == server_id,
        _RUNS,
    )


def add_chunks(
    connection: Connection,
    server_id: str,
    file_number: int,
    part: int,
    chunks: Sequence[NewChunk],
    *,
    positions: bytes,
    vectors: bytes,
    limits: SizeLimits,
) -> bool:
    query = (
        select(vector_stores.c.number, vector_stores.c.key_id)
        .join(vector_store_files, vector_stores.c.id == vector_store_files.c.store_id)
        .where(_is_owned(file_number, server_id))
        .with_for_update(of=vector_store_files)
    )
    found = connection.execute(query).one_or_none()
    if found is None:
        return False
    num_bytes = len(vectors) + sum(len(chunk.text.encode()) for chunk in chunks)
    require_room(connection, limits, found.key_id, num_bytes)
    usage_bytes = vector_store_files.c.usage_bytes + num_bytes
    is_it = vector_store_files.c.number == file_number
    connection.execute(update(vector_store_files).where(is_it).values(usage_bytes=usage_bytes))
    rows = []
    for chunk in chunks:
        added = insert(vector_store_chunks).values(
            file_number=file_number,
            position=chunk.position,
            start=chunk.start,
            heading=chunk.heading,
            text=chunk.text,
        )
        number = connection.execute(added.returning(vector_store_chunks.c.number)).scalar_one()
        rows.append((int(number), chunk.words))
    word_index.add(connection, found.number, rows)
    connection.execute(
        insert(vector_store_vectors).values(
            file_number=file_number, part=part, positions=positions, vectors=vectors
        )
    )
    return True


def end(
    connection: Connection,
    server_id: str,
    file_number: int,
    status: FileStatus,
    *,
    error_code: ErrorCode | None = None,
    error_message: str | None = None,
) -> bool:
    is_it = _is_owned(file_number, server_id)
    if status is not FileStatus.COMPLETED:
        drop_chunks(connection, is_it)
    values = {"owner": None, "error_code": error_code, "error_message": error_message}
    changed = update(vector_store_files).where(is_it).values(status=status.value, **values)
    return connection.execute(changed).rowcount > 0


def release(connection: Connection, server_id: str, file_number: int) -> None:
    num_tries = vector_store_files.c.num_tries - 1
    connection.execute(
        update(vector_store_files)
        .where(_is_owned(file_number, server_id))
        .values(owner=None, num_tries=num_tries)
    )


def searched_files(
    connection: Connection, store_ids: Collection[str]
) -> dict[str, list[SearchedFile]]:
    columns = [vector_store_files.c[name] for name in SearchedFile.__struct_fields__]
    query = (
        select(vector_store_files.c.store_id, *columns)
        .where(vector_store_files.c.store_id.in_(store_ids), _IS_READY, is_present_exists)
        .order_by(vector_store_files.c.number)
    )
    found: dict[str, list[SearchedFile]] = {store_id: [] for store_id in store_ids}
    for store_id, *values in connection.execute(query):
        found[store_id].append(SearchedFile(*values))
    return found


def vector_sizes(connection: Connection, file_numbers: Collection[int]) -> dict[int, int]:
    columns = vector_store_vectors.c
    query = (
        select(columns.file_number, func.sum(func.length(columns.vectors)))
        .join(vector_store_files, vector_store_files.c.number == columns.file_number)
        .group_by(columns.file_number)
    )
    wanted, sizes = sorted(file_numbers), {}
    for first in range(0, len(wanted), _MANY):
        some = columns.file_number.in_(wanted[first : first + _MANY])
        for number, num_bytes in connection.execute(query.where(some, _IS_READY)):
            sizes[int(number)] = int(num_bytes)
    return sizes


def vectors(connection: Connection, file_numbers: Collection[int]) -> list[VectorPart]:
    columns = vector_store_vectors.c
    query = (
        select(columns.file_number, columns.positions, columns.vectors)
        .join(vector_store_files, vector_store_files.c.number == columns.file_number)
        .order_by(columns.file_number, columns.part)
    )
    wanted, parts = sorted(file_numbers), []
    for first in range(0, len(wanted), _MANY):
        some = columns.file_number.in_(wanted[first : first + _MANY])
        rows = connection.execute(query.where(some, _IS_READY))
        parts += [VectorPart(row[0], bytes(row[1]), bytes(row[2])) for row in rows]
    return parts


def find_words(
    connection: Connection,
    store_ids: Collection[str],
    words: Sequence[str],
    file_numbers: Collection[int] | None,
    limit: int,
) -> list[ChunkPlace]:
    query = select(vector_stores.c.number).where(vector_stores.c.id.in_(store_ids))
    numbers = list(connection.execute(query).scalars())
    return word_index.find(connection, numbers, words, file_numbers, limit)


def chunks(connection: Connection, places: Collection[ChunkPlace]) -> list[StoredChunk]:
    columns = vector_store_chunks.c
    pairs = [(place.file_number, place.position) for place in places]
    query = (
        select(*_CHUNK)
        .join(vector_store_files, vector_store_files.c.number == columns.file_number)
        .where(tuple_(columns.file_number, columns.position).in_(pairs), _IS_READY)
    )
    return [StoredChunk(**row._mapping) for row in connection.execute(query)]


def chunks_of_file(
    connection: Connection, file_number: int, first: int, limit: int
) -> list[StoredChunk]:
    columns = vector_store_chunks.c
    query = (
        select(*_CHUNK)
        .where(columns.file_number == file_number, columns.position >= first)
        .order_by(columns.position)
        .limit(limit)
    )
    return [StoredChunk(**row._mapping) for row in connection.execute(query)]


def free_some(connection: Connection) -> int:
    """Frees some chunks of a deleted file; returns a number above 0 if there was such a file."""
    file_number = connection.execute(
        select(vector_store_waste.c.file_number).limit(1)
    ).scalar_one_or_none()
    if file_number is None:
        return 0
    num_freed = _free(connection, file_number, limit=_MAX_FREED)
    if num_freed < _MAX_FREED:
        is_it = vector_store_waste.c.file_number == file_number
        connection.execute(delete(vector_store_waste).where(is_it))
    return max(num_freed, 1)


def _free(connection: Connection, file_number: int, *, limit: int | None) -> int:
    """Deletes chunks of a file, at most `limit`, and all its vectors; returns their number."""
    columns = vector_store_chunks.c
    query = select(columns.number).where(columns.file_number == file_number).limit(limit)
    numbers = list(connection.execute(query).scalars())
    for first in range(0, len(numbers), _MANY):
        some = numbers[first : first + _MANY]
        word_index.remove(connection, some)
        connection.execute(delete(vector_store_chunks).where(columns.number.in_(some)))
    is_own = vector_store_vectors.c.file_number == file_number
    connection.execute(delete(vector_store_vectors).where(is_own))
    return len(numbers)
