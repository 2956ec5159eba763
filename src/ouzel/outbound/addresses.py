"""Tells which addresses are public, that is, may be reached by anybody on the internet.

The list is our own, because Python's `is_global` differs between versions.
"""

import ipaddress
import socket

from ouzel.config.media_hosts import Address, Network

_NOT_PUBLIC_IPV4: tuple[Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # behind a carrier's NAT
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # a cloud's own services, at an address that looks public
            "169.254.0.0/16",  # link-local, and the metadata of clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")  # all assigned global unicast addresses
_NOT_PUBLIC_IPV6: tuple[Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        (
            "2001::/23",  # protocol assignments, such as Teredo
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which contains an IPv4 address
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # IPv4 addresses for networks without IPv4


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_IPV4)
    inner = _inner_ipv4(address)
    if inner is not None:
        return is_public(inner)
    return address in _PUBLIC_IPV6 and not any(address in network for network in _NOT_PUBLIC_IPV6)


def _inner_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address that a connection to this IPv6 address reaches, or None."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


def is_own(address: Address) -> bool:
    """Tells whether the address belongs to this machine, whose services may be closed to others."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # This sends nothing. It finds the address from which a packet would be sent.
            probe.connect((str(address), 1))
            return str(probe.getsockname()[0]) == str(address)
    except OSError:  # there is no route to the address
        return False
