"""Trusts the host of a URL that the operator has configured, at any address."""

from ipaddress import ip_network

from ouzel.config.media_hosts import AllowedHost, AllowedHosts, AllowedNetwork
from ouzel.errors import InvalidRequest
from ouzel.outbound.hosts import read_target

_EVERYWHERE = ("0.0.0.0/0", "::/0")


def trust_host(url: str, option: str) -> AllowedHosts:
    """Returns the hosts that a configured URL needs: its own host and port.

    `option` names the option in errors. Raises InvalidRequest if the URL has no valid host.
    """
    if not url.startswith(("http://", "https://")):
        raise InvalidRequest(
            f"must begin with http:// or https://, given {url[:100]!r}", field=option
        )
    target = read_target(url, option)
    return AllowedHosts(
        False,
        frozenset({AllowedHost(target.host, target.port)}),
        tuple(AllowedNetwork(ip_network(text), target.port) for text in _EVERYWHERE),
        option,
    )
