"""A client is told in one sentence why a database cannot be used; what the database itself says is for the log.

Its own words name hosts, users, files and statements.
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

from ouzel.errors import StoreUnavailable

LOCKED = "another program holds its lock"
FULL = "there is no room left on its disk"
_OUT_OF_REACH = "its database is out of reach"
_READ_ONLY = "it may only be read"
_DENIED = "its database does not let this server in"
_CHANGED = "its tables are not there"
_UNKNOWN = "the server's log says why"

_SQLITE = {  # by the beginning of the error's name
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": FULL,
    "SQLITE_IOERR_WRITE": FULL,  # a quota, a limit of the file's size
    "SQLITE_IOERR_SHMSIZE": FULL,
    "SQLITE_IOERR": "its disk fails",
    "SQLITE_CANTOPEN": "its file cannot be opened",
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_CORRUPT": "its file is damaged",
    "SQLITE_NOTADB": "its file is damaged",
}
_POSTGRES = {  # by the beginning of the SQLSTATE
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
    """A transaction has failed for a reason outside of this program; what is raised from it has the details."""

    def __init__(self, why: str, details: str) -> None:
        super().__init__(details)
        self.why = why

    @property
    def is_full(self) -> bool:
        return self.why == FULL

    def for_clients(self) -> StoreUnavailable:
        return StoreUnavailable(f"the store cannot be used now: {self.why}", retry_after_s=1.0)


def unusable(error: SQLAlchemyError | sqlite3.Error) -> DatabaseUnusable | None:
    """Returns None for a bug of ours."""
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
    if why is None and (
        isinstance(error, _OUR_BUGS) or not isinstance(error, DBAPIError | sqlite3.Error)
    ):
        return None
    return DatabaseUnusable(why or _UNKNOWN, reason(error))


def sqlstate(error: Exception) -> str | None:
    return getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None


def reason(error: Exception) -> str:
    """Returns what the database itself says, without the statement and its values."""
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(text.split()) or type(error).__name__
