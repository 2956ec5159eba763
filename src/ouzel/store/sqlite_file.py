"""The file of a SQLite store is opened only as what it was at the start: one of ours, and the one that the path names.

SQLite itself writes on to a file that was deleted or replaced, and what it writes is lost with its last connection. So
each transaction begins with a look at the path: a file that is gone is an error until it is back, and one in its place
is opened if it is a store too. A file of another program is neither written to nor given another journal.
"""

import logging
import os
import sqlite3
from pathlib import Path

from ouzel.errors import StoreOpenError
from ouzel.store.faults import DatabaseUnusable
from ouzel.store.reserve import Reserve
from ouzel.store.tables import metadata, schema_version

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x4F757A6C  # "Ouzl", in the file's header
_MAX_WAL_BYTES = 64 * 2**20
_MAX_VACUUMED_PAGES = 1024  # at once: 4 MiB, as others wait
_MAX_FREE_PAGES = 256  # worth keeping
_Identity = tuple[int, int]


class StoreConnection(sqlite3.Connection):
    """It knows which file it has opened, whatever the path names by now."""

    identity: _Identity


class SqliteFile:
    def __init__(self, path: Path, *, busy_s: float) -> None:
        """Makes the file if there is none, readable for its owner alone: prompts are in it. Raises StoreOpenError."""
        self.path = path.absolute()
        self.reserve = Reserve(self.path)
        self._busy_s = busy_s
        self._is_new = True  # until the schema is known to be in it
        self._is_missed = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreOpenError(f"the store's file cannot be made: {error}") from error

    def has_schema(self) -> None:
        """From now on no other file than a store is opened."""
        self._is_new = False
        self.reserve.take()

    def connect(self) -> StoreConnection:
        """Opens the file, which must be there. Raises DatabaseUnusable, or StoreOpenError at the start."""
        identity = self._identity()
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            timeout=self._busy_s,
            isolation_level=None,  # the driver begins nothing; the engine's "begin" does
            check_same_thread=False,
            factory=StoreConnection,
        )
        connection.identity = identity
        try:
            self._check_owner(connection)
            self.check(connection)
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def is_open_in(self, connection: StoreConnection) -> bool:
        """Tells whether the path still names what the connection has opened. Raises DatabaseUnusable if it is gone."""
        return connection.identity == self._identity()

    def check(self, connection: StoreConnection) -> None:
        """Raises DatabaseUnusable where the file was replaced while it was being opened."""
        if not self.is_open_in(connection):
            raise DatabaseUnusable("its file is being replaced", f"{self.path} is being replaced")

    def _identity(self) -> _Identity:
        try:
            status = os.stat(self.path)
        except OSError as error:
            if not self._is_missed:
                self._is_missed = True
                logger.error(
                    "the store's file is gone: %s; nothing is kept until it is back", error
                )
            raise DatabaseUnusable("its file is gone", str(error)) from error
        if self._is_missed:
            self._is_missed = False
            logger.info("the store's file is back: %s", self.path)
        return status.st_dev, status.st_ino

    def _check_owner(self, connection: StoreConnection) -> None:
        """Reads only."""
        application_id: int = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        is_empty = not tables and not application_id
        is_ours = schema_version.name in tables and (
            application_id == APPLICATION_ID
            or (not application_id and tables >= metadata.tables.keys())
        )
        if is_ours or (is_empty and self._is_new):
            return
        if self._is_new:
            raise StoreOpenError(
                f"{self.path} is a database of another program: it is left as it is"
            )
        details = f"{self.path} has been replaced by a file that is no store"
        raise DatabaseUnusable("its file has been replaced by another", details)


def _prepare(connection: sqlite3.Connection) -> None:
    """auto_vacuum has an effect in an empty file only, before WAL writes to it, and needs the write lock to be set."""
    if connection.execute("PRAGMA page_count").fetchone() == (0,):
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute(
        "PRAGMA synchronous=NORMAL"
    )  # kill -9 loses nothing; a power cut may lose the last moments
    connection.execute(f"PRAGMA journal_size_limit={_MAX_WAL_BYTES}")


def vacuum(connection: sqlite3.Connection) -> int:
    """Cuts off some pages and says how many; a file that was made without auto_vacuum has none to cut off."""
    num_free: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    if num_free <= _MAX_FREE_PAGES:
        return 0
    connection.executescript(
        f"PRAGMA incremental_vacuum({_MAX_VACUUMED_PAGES})"
    )  # execute() stops at one
    return num_free - int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def empty_log(connection: sqlite3.Connection) -> None:
    """Writes what the log has into the file itself and gives its space back, as far as that can be done now."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
