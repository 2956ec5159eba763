"""Checks the host of a URL and its addresses: may this server connect to them?"""

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ouzel.config.media_hosts import AllowedHosts, InvalidHost, normal_host, read_address
from ouzel.errors import InvalidRequest
from ouzel.outbound.addresses import is_own, is_public

# Returns the addresses of a host and port; raises OSError.
Resolve = Callable[[str, int], Awaitable[list[str]]]

logger = logging.getLogger(__name__)

_PORTS = {"http": 80, "https": 443}
_MAX_URL_LEN = 8192
_IN_TARGETS = "/?:@!$&'()*+,;=-._~%[]|"  # characters that are not percent-encoded
_MAX_ADDRESSES = 4  # addresses to try, one after the other
# Halves of surrogate pairs are never valid in a URL.
_STRANGE = re.compile(r"[\x00-\x20\x7f-\x9f\\\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Target:
    scheme: str  # http or https
    host: str  # normalised
    port: int
    path: str  # path and query, in ASCII

    @property
    def has_usual_port(self) -> bool:
        return self.port == _PORTS[self.scheme]

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.has_usual_port else f"{host}:{self.port}"


def read_target(url: str, path: str) -> Target:
    """Parses a URL into its host, port and path. `path` names the part in errors.

    A URL that other programs may parse differently is refused. Raises InvalidRequest.
    """
    if len(url) > _MAX_URL_LEN:
        raise InvalidRequest(
            f"must be a URL of <= {_MAX_URL_LEN} characters, given {len(url)}", field=path
        )
    if _STRANGE.search(url):
        raise InvalidRequest(
            "must be a URL without spaces, control characters and backslashes", field=path
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidRequest(f"must be a valid URL: {error}", field=path) from None
    if "@" in parts.netloc:
        raise InvalidRequest("must be a URL without a user name and a password", field=path)
    if parts.netloc.endswith(":") or port == 0:
        raise InvalidRequest(
            "must be a URL with a port between 1 and 65535, or without a port", field=path
        )
    try:
        host = normal_host(f"[{host}]" if "[" in parts.netloc else host)
    except InvalidHost as error:
        raise InvalidRequest(
            f"must be a URL of a host: {host[:100]!r} {error}", field=path
        ) from None
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], quote(target, safe=_IN_TARGETS))


def check_host(target: Target, allowed: AllowedHosts, path: str) -> None:
    """Raises InvalidRequest if the options do not allow the host."""
    if not allowed.permit_host(target.host, target.port, is_usual=target.has_usual_port):
        raise InvalidRequest(
            f"must be of a host in the server's {allowed.option}, given {target.host_header!r}",
            field=path,
        )


async def checked_addresses(
    target: Target, allowed: AllowedHosts, resolve: Resolve, path: str
) -> list[str]:
    """Returns the host's addresses if all of them may be connected to. Raises InvalidRequest.

    An unknown host gets the same error, so that clients cannot explore the names of a private
    network.
    """
    try:
        texts = (
            [target.host] if read_address(target.host) else await resolve(target.host, target.port)
        )
    except OSError as error:
        logger.debug("host %s was not found: %s", target.host, error)
        texts = []
    forbidden = [text for text in texts if not _may_be_connected_to(text, target, allowed)]
    if forbidden:
        logger.debug(
            "host %s has the address %s, which is not public",
            target.host,
            forbidden[0],
        )
    if forbidden or not texts:
        raise InvalidRequest(
            f"must be of a host with public addresses, and {target.host!r} has none", field=path
        )
    return texts[:_MAX_ADDRESSES]


def _may_be_connected_to(text: str, target: Target, allowed: AllowedHosts) -> bool:
    address = read_address(text)
    if address is None:
        return False
    if allowed.permit_address(address, target.port, is_usual=target.has_usual_port):
        return True
    return is_public(address) and not is_own(address)
