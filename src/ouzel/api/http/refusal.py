"""What the protocol finds wrong with a request is told as all else is, by the application: in its style, with an id, a
log line and an error object.

The protocol leaves the error in the request's scope. One that could not be read has a scope without method and path.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any  # scopes hold anything

from ouzel.errors import OuzelError

_SCOPE_KEY = "ouzel.refusal"
UNREAD = "-"  # the method and the path of what could not be read


def refuse(scope: MutableMapping[str, Any], error: OuzelError) -> None:
    scope[_SCOPE_KEY] = error


def raise_refusal(scope: Mapping[str, Any]) -> None:
    """Raises the error that the protocol has left, if any."""
    error = scope.get(_SCOPE_KEY)
    if error is not None:
        raise error
