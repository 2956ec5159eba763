"""Refuses requests whose Host header names another site.

A page of any site can reach a server on this machine if the site's name resolves to this machine
(DNS rebinding): the browser then takes both for one origin. The Host header of such a request names
the site. It is refused if nothing else protects the server.
"""

import ipaddress
import re
import socket

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.errors import ForeignHost
from ouzel.config import ServerConfig
from ouzel.errors import InvalidRequest

_HOST = re.compile(
    r"(\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._~-]+)?\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]*)?"
)
_MAX_SHOWN = 100
_MAX_PASSED = 64
# names of this machine in containers; nobody can own such a name
_CONTAINERS_HOST = ("host.docker.internal", "host.containers.internal")


class HostCheck:
    """Raises InvalidRequest for a faulty Host header, and ForeignHost for another host."""

    def __init__(self, app: ASGIApp, allowed: frozenset[str] | None) -> None:
        """`allowed` are lower-case names, besides addresses and localhost.

        None allows all hosts.
        """
        self._app = app
        self._allowed = allowed
        # Host headers that were allowed lately: most requests have the same
        self._passed: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(scope)
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        values = [value for name, value in scope["headers"] if name == b"host"]
        if not values and scope.get("http_version") == "1.0":
            return
        if len(values) != 1:
            raise InvalidRequest(f"a request must have one Host header, given {len(values)}")
        if values[0] in self._passed:
            return
        self._check_name(values[0].decode("latin-1").strip(" \t"))
        if len(self._passed) >= _MAX_PASSED:
            self._passed.clear()
        self._passed.add(values[0])

    def _check_name(self, text: str) -> None:
        if not text and self._allowed is None:
            return  # an absolute URL may have an empty host
        match = _HOST.fullmatch(text)
        if match is None:
            raise InvalidRequest(
                f"the Host header must be a name or an address, given {text[:_MAX_SHOWN]!r}"
            )
        if self._allowed is not None and not self._is_allowed(
            match[1].lower().removesuffix("."), self._allowed
        ):
            how = "--allowed-hosts adds names to the names of this machine"
            raise ForeignHost(
                f"this server does not answer for the host {match[1][:_MAX_SHOWN]}: {how}"
            )

    @staticmethod
    def _is_allowed(name: str, allowed: frozenset[str]) -> bool:
        return (
            name in allowed
            or name == "localhost"
            or name.endswith(".localhost")
            or _is_address(name.strip("[]"))
        )


def allowed_hosts(server: ServerConfig) -> frozenset[str] | None:
    """Returns the host names to allow, or None to allow all."""
    if "*" in server.allowed_hosts or server.uds:
        return None
    if not server.allowed_hosts and (server.api_key or not _is_loopback(server.host)):
        return None
    own = socket.gethostname().lower()
    names = map(str.lower, server.allowed_hosts or _CONTAINERS_HOST)
    return frozenset({*names, own, own.partition(".")[0]})


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host == "localhost"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
