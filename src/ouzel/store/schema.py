"""Makes the schema or brings an older one up to date, once, however many servers start together."""

from collections.abc import Callable

from sqlalchemy import Connection, insert, inspect, select, text, update

from ouzel.errors import StoreOpenError
from ouzel.store.tables import metadata, schema_version

VERSION = 1
UPGRADES: dict[int, Callable[[Connection], None]] = {}  # from a version to the one after it
_ADVISORY_LOCK = 0x6F757A656C  # "ouzel"


def prepare_schema(connection: Connection) -> None:
    """Raises StoreOpenError for a schema that a newer Ouzel made."""
    if connection.dialect.name == "postgresql":  # a transaction that writes to SQLite is alone anyway
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    old_version = _stored_version(connection)
    if old_version is None:
        metadata.create_all(connection)
        connection.execute(insert(schema_version).values(version=VERSION))
        return
    if old_version > VERSION:
        raise StoreOpenError(
            f"the store was made by a newer Ouzel: its schema has version {old_version}, this one knows up to {VERSION}"
        )
    for version in range(old_version, VERSION):
        UPGRADES[version](connection)
    if old_version < VERSION:
        connection.execute(update(schema_version).values(version=VERSION))


def _stored_version(connection: Connection) -> int | None:
    if not inspect(connection).has_table(schema_version.name):
        return None
    return int(connection.execute(select(schema_version.c.version)).scalar_one())
