"""Describes the failures of a connection, for the client, the model and the log."""

import logging
from dataclasses import dataclass

from mcp import MCPError

from ouzel.hosted_tools.mcp.records import McpServer

logger = logging.getLogger(__name__)

_MAX_REASON = 300  # characters
_FIRST_ERROR = 400
# The library makes up messages with these beginnings; they do not tell the cause.
_MADE_UP = {
    "Connection closed": "has closed the connection",
    "Failed to parse": "sent an answer that cannot be read",
    "Not Found": "has no such method",
    "Redirect to": "answered with a redirect, which is not followed",
    "SSE stream": "ended its answer without a result",
    "Server returned an error response": "answered with an error",
    "Session terminated": "has ended the session",
    "Unexpected content type": "sent an answer that cannot be read",
}


@dataclass(slots=True)
class Faults:
    """The newest faults of one connection, as they are seen below the library."""

    status: int | None = None  # the newest answer had it, and was no success
    text: str | None = None  # a predicate, whose subject is the server
    detail: str | None = None  # may have addresses
    is_over: bool = False  # no more messages come

    def clear(self) -> None:
        self.status = self.text = self.detail = None


def describe_failure(error: BaseException, faults: Faults, server: McpServer) -> str:
    """Returns a predicate, whose subject is the server.

    Clients do not learn addresses and files of a server that the operator has configured: the log
    has them.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text, detail = _find_cause(error, faults)
    if detail and server.is_operators:
        logger.warning("the MCP server %s %s: %s", server.label, text, detail)
        return f"{text} (the log of this server says why)"
    return f"{text}: {detail}" if detail else text


def _find_cause(error: BaseException, faults: Faults) -> tuple[str, str | None]:
    """Returns the cause, and a detail of it that may have addresses."""
    message = _shorten(error)
    if isinstance(error, MCPError):
        for beginning, text in _MADE_UP.items():
            if message.startswith(beginning):
                return _describe_faults(faults) or (text, None)
        return f"answered with the error {message!r}", None
    if isinstance(error, ValueError):  # the library's error about an answer of another form
        return "sent an answer that does not follow the protocol", None
    text = "cannot be started" if isinstance(error, OSError) else "failed"
    return _describe_faults(faults) or (text, message)


def _describe_faults(faults: Faults) -> tuple[str, str | None] | None:
    if faults.text is not None:
        return faults.text, faults.detail
    if faults.status is None:
        return None
    kind = (
        "status" if faults.status >= _FIRST_ERROR else "redirect, which is not followed, of status"
    )
    return f"answered with the {kind} {faults.status}", None


def _shorten(error: BaseException) -> str:
    return " ".join(str(error).split())[:_MAX_REASON] or type(error).__name__
