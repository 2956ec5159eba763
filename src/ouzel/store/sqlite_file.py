"""Opens the file of a SQLite store, and checks that it is a store and that the path still names it.

1.  SQLite goes on writing to a file that was deleted or replaced; the data is lost when the last
    connection closes. Each transaction therefore begins with a check of the path.
2.  A missing file is an error until the file is back. A file in its place is opened if it is a
    store too.
3.  A database of another program is never changed, not even its journal mode.
"""

import logging
import os
import sqlite3
from pathlib import Path

from ouzel.store.errors import StoreOpenError
from ouzel.store.faults import DatabaseUnusable
from ouzel.store.reserve import Reserve
from ouzel.store.tables import TABLES_OF_ALL_VERSIONS, schema_version

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x4F757A6C  # "Ouzl", in the file's header
_MAX_WAL_BYTES = 64 * 2**20
_MAX_VACUUMED_PAGES = 1024  # pages per call, 4 MiB: other transactions wait meanwhile
_MAX_FREE_PAGES = 256  # free pages that are not worth a vacuum
_Identity = tuple[int, int]  # device and inode


class StoreConnection(sqlite3.Connection):
    """A connection remembers the identity of its file, because the path may be given to another."""

    identity: _Identity


class SqliteFile:
    def __init__(self, path: Path, *, busy_s: float) -> None:
        """Makes the file if it does not exist; only its owner can read it, because it has prompts.

        Raises StoreOpenError.
        """
        self.path = path.absolute()
        self.reserve = Reserve(self.path)
        self._busy_s = busy_s
        self._is_new = True  # until the schema is known to be in it
        self._is_missed = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreOpenError(f"the store's file cannot be created: {error}") from error

    def has_schema(self) -> None:
        """Notes that the schema exists: from now on an empty file is not accepted as a store."""
        self._is_new = False
        self.reserve.take()

    def connect(self) -> StoreConnection:
        """Opens the existing file.

        Raises DatabaseUnusable, or StoreOpenError for a database of another program at the start.
        """
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
        """Tells whether the path still names the file of the connection.

        Raises DatabaseUnusable if the path names no file.
        """
        return connection.identity == self._identity()

    def check(self, connection: StoreConnection) -> None:
        """Raises DatabaseUnusable if the file was replaced while it was being opened."""
        if not self.is_open_in(connection):
            raise DatabaseUnusable("its file is being replaced", f"{self.path} is being replaced")

    def _identity(self) -> _Identity:
        try:
            status = os.stat(self.path)
        except OSError as error:
            if not self._is_missed:
                self._is_missed = True
                logger.error(
                    "the store's file is gone: %s; nothing is stored until it is back", error
                )
            raise DatabaseUnusable("its file is gone", str(error)) from error
        if self._is_missed:
            self._is_missed = False
            logger.info("the store's file is back: %s", self.path)
        return status.st_dev, status.st_ino

    def _check_owner(self, connection: StoreConnection) -> None:
        """Checks that the file is a store, or empty at the start; writes nothing.

        Raises StoreOpenError at the start, DatabaseUnusable later.
        """
        application_id: int = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        is_empty = not tables and not application_id
        is_ours = schema_version.name in tables and (
            application_id == APPLICATION_ID
            or (not application_id and tables >= TABLES_OF_ALL_VERSIONS)
        )
        if is_ours or (is_empty and self._is_new):
            return
        if self._is_new:
            raise StoreOpenError(
                f"{self.path} is a database of another program; it is left unchanged"
            )
        details = f"{self.path} has been replaced by a file that is not a store"
        raise DatabaseUnusable("its file has been replaced by another", details)


def _prepare(connection: sqlite3.Connection) -> None:
    """Sets the pragmas of a connection.

    auto_vacuum can be set only in an empty file, before WAL writes to the file.
    """
    if connection.execute("PRAGMA page_count").fetchone() == (0,):
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    # A killed process loses nothing; a power cut may lose the last transactions.
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA journal_size_limit={_MAX_WAL_BYTES}")


def vacuum(connection: sqlite3.Connection) -> int:
    """Cuts off free pages at the end of the file, and returns their number.

    The number is 0 for a file that was made without auto_vacuum.
    """
    num_free: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    if num_free <= _MAX_FREE_PAGES:
        return 0
    # execute() would stop after one page.
    connection.executescript(f"PRAGMA incremental_vacuum({_MAX_VACUUMED_PAGES})")
    return num_free - int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def empty_log(connection: sqlite3.Connection) -> None:
    """Copies the write-ahead log into the database file and truncates it, if no reader needs it."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
