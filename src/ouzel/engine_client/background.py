"""Marks the requests that run in the background, such as the lines of a batch.

The mark belongs to the context of a request: everything that the request submits to any engine
inherits it. Such requests have places of their own, so that no other request is refused because of
them, and the lowest priority.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from ouzel.types.engine_request import BACKGROUND_PRIORITY, EngineRequest

in_background: ContextVar[bool] = ContextVar("in_background", default=False)


@contextmanager
def background() -> Iterator[None]:
    """Lets all requests of the block, and of tasks that it creates, run in the background."""
    token = in_background.set(True)
    try:
        yield
    finally:
        in_background.reset(token)


def lower_priority(request: EngineRequest) -> EngineRequest:
    """Returns the request with a priority of the background, if it runs there."""
    if not in_background.get() or request.is_background:
        return request
    return msgspec.structs.replace(request, priority=BACKGROUND_PRIORITY + request.priority)
