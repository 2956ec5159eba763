"""Explains in one line why a download from the hub failed, with advice."""

import errno
import os
from json import JSONDecodeError

import httpx2
from huggingface_hub import constants, get_token
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    IncompleteSnapshotError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)


class NotEnoughDisk(OSError):
    """The message names the needed and the free space."""


# ValueError: a wrong name, an answer without JSON, a wrong proxy address.
# ImportError: a package that the proxy needs is missing.
FAILURES = (HfHubHTTPError, httpx2.HTTPError, OSError, ValueError, ImportError)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNAUTHORISED, _FORBIDDEN, _TOO_MANY, _FIRST_OF_SERVER = 401, 403, 429, 500


def is_disk_full(error: Exception) -> bool:
    """Tells whether the disk, or a limit of its use, has no room for a file."""
    return isinstance(error, NotEnoughDisk) or (
        isinstance(error, OSError) and error.errno in _NO_ROOM
    )


def is_missing(error: Exception) -> bool:
    """Tells whether the hub has no such model, or hides it."""
    return isinstance(error, RepositoryNotFoundError) and not isinstance(error, GatedRepoError)


def is_unreachable(error: Exception) -> bool:
    """Tells whether the hub was out of reach; False if it answered with a refusal."""
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        return status == _TOO_MANY or status >= _FIRST_OF_SERVER
    # Instead of JSON, the log-in page of a network may have answered.
    is_page = isinstance(error, JSONDecodeError)
    return is_page or isinstance(
        error, (httpx2.TransportError, ConnectionError, LocalEntryNotFoundError)
    )


def explain_failure(error: Exception, repo_id: str) -> str:
    """Returns the reason of a failed download for people."""
    hub = constants.ENDPOINT
    match error:
        case GatedRepoError():
            reason = f"{repo_id} is gated: ask for access at {hub}/{repo_id}, then {_with_token()}"
        case RepositoryNotFoundError():
            reason = f"{hub} has no model {repo_id}, or it is private: {_with_token()}"
        case IncompleteSnapshotError():
            reason = f"{_unreachable(hub)}, and files of {repo_id} are missing in the cache"
        case LocalEntryNotFoundError():
            reason = (
                f"{_unreachable(hub)}, and {repo_id} is not in the cache ({constants.HF_HUB_CACHE})"
            )
        case HfHubHTTPError() if error.response.status_code in (_UNAUTHORISED, _FORBIDDEN):
            reason = f"{hub} refuses access to {repo_id}: {_with_token()}"
        case HfHubHTTPError():
            reason = f"{hub} answered with status {error.response.status_code}"
        case httpx2.HTTPError():
            reason = (
                f"the connection to {hub} failed: {_first_line(error)}; the received data is kept, "
                "try again"
            )
        case OSError(errno=code) if code in _NO_ROOM:
            reason = f"{constants.HF_HUB_CACHE} has no room for the files ({error.strerror})"
        case _:
            reason = _first_line(error)
    return reason


def _unreachable(hub: str) -> str:
    if constants.is_offline_mode():
        return "HF_HUB_OFFLINE forbids access to the hub"
    return f"{hub} cannot be reached (no network?)"


def _with_token() -> str:
    if os.environ.get("HF_TOKEN"):
        return "the token in HF_TOKEN does not give access"
    return (
        "the token on this machine does not give access"
        if get_token()
        else "set HF_TOKEN to a token with access"
    )


def _first_line(error: Exception) -> str:
    """Returns the first line of a message; the next lines are advice about the hub's library."""
    return (str(error).splitlines() or [repr(error)])[0]
