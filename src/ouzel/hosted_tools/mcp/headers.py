"""Checks the HTTP headers that clients and operators add to the requests of an MCP server."""

import re
from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
_MAX_CHARS = 16_384
# Clients may name a few hosts only; another `Host` would reach other sites behind the same address.
_OWN = frozenset(
    (
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "expect"),
        *("host", "keep-alive", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)
_OWN_BEGINNINGS = ("mcp-", "proxy-")


def find_header_fault(headers: Mapping[str, str]) -> str | None:
    """Returns a complaint about the first wrong header, without its value, which may be secret."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return (
                "must have names and values of HTTP headers, in ASCII and without line breaks; "
                f"the header {name[:100]!r} is wrong"
            )
        if name.lower() in _OWN or name.lower().startswith(_OWN_BEGINNINGS):
            return f"must not have the header {name[:100]!r}, which this server sets itself"
    if sum(len(name) + len(value) for name, value in headers.items()) > _MAX_CHARS:
        return f"must have <= {_MAX_CHARS} characters in all"
    return None
