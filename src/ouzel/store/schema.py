"""Creates or upgrades the schema, exactly once even if many servers start together."""

from collections.abc import Mapping

from sqlalchemy import Connection, insert, inspect, select, text, update

from ouzel.store.batches import tables as _batches  # noqa: F401  completes `metadata`
from ouzel.store.chats import tables as _chats  # noqa: F401  completes `metadata`
from ouzel.store.errors import StoreOpenError
from ouzel.store.files import tables as _files  # noqa: F401
from ouzel.store.sqlite_file import APPLICATION_ID
from ouzel.store.tables import (
    TABLES_OF_ALL_VERSIONS,
    UPGRADES,
    VERSION,
    Upgrade,
    metadata,
    schema_version,
)
from ouzel.store.uploads import tables as _uploads  # noqa: F401  completes `metadata`
from ouzel.store.vector_stores import word_index as _word_index  # noqa: F401

_ADVISORY_LOCK = 0x6F757A656C  # "ouzel"


def prepare_schema(
    connection: Connection,
    *,
    version: int = VERSION,
    upgrades: Mapping[int, Upgrade] = UPGRADES,
) -> None:
    """Creates or upgrades the schema to `version` in the current transaction.

    Raises StoreOpenError for a schema that a newer Ouzel or another program has made.
    """
    # SQLite needs no lock of its own: it runs one writing transaction at a time.
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    old_version = _stored_version(connection, version)
    if old_version is None:
        metadata.create_all(connection)
        connection.execute(insert(schema_version).values(version=version))
        _mark(connection)
        return
    if old_version > version:
        raise StoreOpenError(
            f"the store was made by a newer Ouzel: its schema has version {old_version}, this one "
            f"knows up to {version}"
        )
    for number in range(old_version, version):
        upgrades[number](connection)
    if old_version < version:
        connection.execute(update(schema_version).values(version=version))
    _mark(connection)


def _mark(connection: Connection) -> None:
    """Writes the application id into the header of a SQLite file; older files lack it."""
    if connection.dialect.name == "sqlite":
        old = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        if old != APPLICATION_ID:
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def _stored_version(connection: Connection, version: int) -> int | None:
    """Returns the version of the stored schema; None for a database without tables of the store.

    `version` is the version of this server, which has all tables of `metadata`. Raises
    StoreOpenError if another program has tables with the same names.
    """
    inspector = inspect(connection)
    names = set(inspector.get_table_names())
    if schema_version.name not in names:
        foreign = sorted(names & metadata.tables.keys())
        if foreign:
            raise StoreOpenError(_foreign(foreign[0]))
        return None
    columns = [column["name"] for column in inspector.get_columns(schema_version.name)]
    if columns != [column.name for column in schema_version.columns]:
        raise StoreOpenError(_foreign(schema_version.name))
    versions = connection.execute(select(schema_version.c.version)).scalars().all()
    if len(versions) != 1 or not isinstance(versions[0], int):
        raise StoreOpenError(_foreign(schema_version.name))
    required = metadata.tables.keys() if versions[0] == version else TABLES_OF_ALL_VERSIONS
    if versions[0] <= version and not required <= names:
        raise StoreOpenError(_foreign(schema_version.name))
    return versions[0]


def _foreign(table: str) -> str:
    return f"the database has a table {table} that Ouzel has not made; it is left unchanged"
