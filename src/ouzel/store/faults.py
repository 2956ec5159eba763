"""Describes faults of the database for clients and for the log.

A client gets one sentence with the reason. The message of the database itself goes to the log only:
it names hosts, users, files and statements.
"""

import sqlite3

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ouzel.store.errors import StoreUnavailable

LOCKED = "another program holds its lock"
FULL = "there is no room left on its disk"
_OUT_OF_REACH = "its database is out of reach"
_READ_ONLY = "it may only be read"
_DENIED = "its database does not let this server in"
_CHANGED = "its tables are not there"
_UNKNOWN = "the server's log says why"

# Beginning of the error's name -> reason for clients.
_SQLITE = {
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": FULL,
    "SQLITE_IOERR_WRITE": FULL,  # a disk quota, or a limit of file sizes
    "SQLITE_IOERR_SHMSIZE": FULL,
    "SQLITE_IOERR": "its disk fails",
    "SQLITE_CANTOPEN": "its file cannot be opened",
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_CORRUPT": "its file is damaged",
    "SQLITE_NOTADB": "its file is damaged",
}
# Beginning of the SQLSTATE -> reason for clients.
_POSTGRES = {
    "08": _OUT_OF_REACH,
    "57": _OUT_OF_REACH,
    "53100": FULL,
    "53": _OUT_OF_REACH,
    "55P03": LOCKED,
    "25006": _READ_ONLY,
    "28": _DENIED,
    "42501": _DENIED,
    "3D000": _CHANGED,
    "3F000": _CHANGED,
    "42P01": _CHANGED,
    "40": LOCKED,
}
_OUR_BUGS = (DataError, IntegrityError, NotSupportedError, ProgrammingError, InterfaceError)


class DatabaseUnusable(Exception):
    """The failure of a transaction for a reason outside of this program.

    `why` is the reason for clients; the message has the details for the log.
    """

    def __init__(self, why: str, details: str) -> None:
        super().__init__(details)
        self.why = why

    @property
    def is_full(self) -> bool:
        return self.why == FULL

    def for_clients(self) -> StoreUnavailable:
        return StoreUnavailable(f"the store cannot be used now: {self.why}", retry_after_s=1.0)


def unusable(error: SQLAlchemyError | sqlite3.Error) -> DatabaseUnusable | None:
    """Classifies an error of the database; returns None for an error that shows a bug."""
    if isinstance(error, PoolTimeout):
        return DatabaseUnusable(LOCKED, reason(error))
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", "")
        why = next((why for beginning, why in _SQLITE.items() if name.startswith(beginning)), None)
    else:
        state = sqlstate(error)
        why = next(
            (why for beginning, why in _POSTGRES.items() if (state or "").startswith(beginning)),
            None,
        )
        if state is None and isinstance(error, DBAPIError) and not isinstance(error, _OUR_BUGS):
            why = _OUT_OF_REACH  # the connection could not be made, or broke
    is_bug = isinstance(error, _OUR_BUGS) or not isinstance(error, DBAPIError | sqlite3.Error)
    if why is None and is_bug:
        return None
    return DatabaseUnusable(why or _UNKNOWN, reason(error))


def sqlstate(error: Exception) -> str | None:
    return getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None


def reason(error: Exception) -> str:
    """Returns the message of the database, without the statement and its values."""
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(text.split()) or type(error).__name__
