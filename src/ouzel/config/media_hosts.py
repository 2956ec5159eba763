"""Reads options such as `allowed_media_domains`: the hosts to which the server may connect."""

import ipaddress
import re
from dataclasses import dataclass

EVERY_PUBLIC_HOST = "all"
_MAX_PORT = 65535
# Names of services in containers have underscores.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*", re.ASCII)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class InvalidHost(ValueError):
    """A text that is not a host; the message is a predicate whose subject is the text."""


@dataclass(frozen=True, slots=True)
class AllowedHost:
    host: str  # normal form, see normal_host
    port: int | None  # None: the usual port of the URL's scheme


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """Names addresses that are allowed even if they are not public."""

    network: Network  # an address is a network of one
    port: int | None


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    allows_every_public_host: bool
    hosts: frozenset[AllowedHost]
    networks: tuple[AllowedNetwork, ...]
    option: str  # the option with the entries

    def permit_host(self, host: str, port: int, *, is_usual: bool) -> bool:
        """Tells whether a host may be asked.

        `host` is in its normal form; `is_usual` says that the port is the default of the scheme.
        """
        address = read_address(host)
        if address is not None and self.permit_address(address, port, is_usual=is_usual):
            return True
        is_named = any(AllowedHost(host, named) in self.hosts for named in _ports(port, is_usual))
        return is_named or (is_usual and self.allows_every_public_host)

    def permit_address(self, address: Address, port: int, *, is_usual: bool) -> bool:
        """Tells whether an entry names the address; an address that is not public needs that."""
        ports = _ports(port, is_usual)
        return any(each.port in ports and address in each.network for each in self.networks)


def _ports(port: int, is_usual: bool) -> tuple[int | None, ...]:
    return (port, None) if is_usual else (port,)


def read_media_hosts(
    entries: tuple[str, ...], option: str = "allowed_media_domains"
) -> AllowedHosts:
    """Reads the entries of `option`. Raises ValueError, which names the wrong entry."""
    hosts: set[AllowedHost] = set()
    networks: list[AllowedNetwork] = []
    for entry in entries:
        if "/" in entry:
            networks.append(AllowedNetwork(_network(entry), None))
        elif entry != EVERY_PUBLIC_HOST:
            allowed = _allowed_host(entry)
            hosts.add(allowed)
            networks += [
                AllowedNetwork(network, allowed.port) for network in _own_networks(allowed.host)
            ]
    return AllowedHosts(EVERY_PUBLIC_HOST in entries, frozenset(hosts), tuple(networks), option)


def normal_host(text: str) -> str:
    """Returns the normal form of a host, by which hosts are compared.

    The form is ASCII in lower case without a trailing dot; an address has one spelling. Raises
    InvalidHost, also for spellings of addresses that only some programs read (`0x7f.1`, `127.1`).
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if (address := read_address(bare)) is not None:
        return str(address)
    name = (text if text.isascii() else _in_ascii(text)).lower().removesuffix(".")
    last_label = name.rpartition(".")[2]
    if not _NAME.fullmatch(name) or last_label.isdecimal() or last_label.startswith("0x"):
        raise InvalidHost("is neither a name nor an address of a host")
    return name


def _in_ascii(name: str) -> str:
    import idna  # noqa: PLC0415  few hosts need it

    try:
        return idna.encode(name, uts46=True).decode("ascii")
    except UnicodeError:  # IDNAError is one
        raise InvalidHost("is no name of a host") from None


def read_address(text: str) -> Address | None:
    try:
        # An address with a zone (`%eth0`) names an interface of the client's machine.
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _network(entry: str) -> Network:
    try:
        return ipaddress.ip_network(entry)
    except ValueError as error:
        raise ValueError(
            f"{entry!r} is no network of addresses, like 10.1.0.0/16: {error}"
        ) from None


def _allowed_host(entry: str) -> AllowedHost:
    host, port = entry, None
    if read_address(entry) is None:
        before, colon, after = entry.rpartition(":")
        if colon and not entry.endswith("]"):
            host, port = before, _port(entry, after)
    try:
        return AllowedHost(normal_host(host), port)
    except InvalidHost as error:
        raise ValueError(
            f"{entry!r} {error}; a host is written without a scheme, a path and wildcards"
        ) from None


def _port(entry: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= _MAX_PORT):
        raise ValueError(f"{entry!r} has no port between 1 and {_MAX_PORT} behind its colon")
    return int(text)


def _own_networks(host: str) -> list[Network]:
    """Returns the addresses that an entry allows although they are not public.

    An address allows itself; `localhost` allows the loopback addresses.
    """
    if host == "localhost":
        return [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]
    address = read_address(host)
    return [] if address is None else [ipaddress.ip_network(address)]
