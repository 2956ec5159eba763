"""Why nothing came from the hub is said in one line, which tells what would help."""

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
    """The message says how much is needed and what is there."""


# ValueError: of a name, of an answer that is no JSON, of a proxy's address; ImportError: of what a proxy needs.
FAILURES = (HfHubHTTPError, httpx2.HTTPError, OSError, ValueError, ImportError)

_UNAUTHORISED, _FORBIDDEN, _TOO_MANY, _FIRST_OF_SERVER = 401, 403, 429, 500


def is_unreachable(error: Exception) -> bool:
    """Tells whether the hub could not be asked now, rather than answered with no."""
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        return status == _TOO_MANY or status >= _FIRST_OF_SERVER
    is_page = isinstance(
        error, JSONDecodeError
    )  # of somebody between the hub and here, who wants a log-in
    return is_page or isinstance(
        error, (httpx2.TransportError, ConnectionError, LocalEntryNotFoundError)
    )


def reason_of(error: Exception, repo_id: str) -> str:
    """Says to people why a repository could not be fetched."""
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
            reason = f"the connection to {hub} failed: {_first_line(error)}; what has come is kept, try again"
        case OSError(errno=errno.ENOSPC):
            reason = f"the disk of {constants.HF_HUB_CACHE} is full"
        case _:
            reason = _first_line(error)
    return reason


def _unreachable(hub: str) -> str:
    if constants.is_offline_mode():
        return "HF_HUB_OFFLINE forbids to ask the hub"
    return f"{hub} cannot be reached (no network?)"


def _with_token() -> str:
    if os.environ.get("HF_TOKEN"):
        return "the token in HF_TOKEN does not open it"
    return (
        "the token on this machine does not open it"
        if get_token()
        else "set HF_TOKEN to a token that may read it"
    )


def _first_line(error: Exception) -> str:
    """Leaves out what follows, which is advice about the library."""
    return (str(error).splitlines() or [repr(error)])[0]
