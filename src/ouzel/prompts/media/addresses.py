"""Which addresses are public: those of other people's servers, which the whole internet may ask.

The list is our own, since Python's `is_global` is not the same in all its versions.
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
            "192.0.0.0/24",  # protocols
            "192.0.2.0/24",  # documents
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documents
            "203.0.113.0/24",  # documents
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")  # all that has been given out
_NOT_PUBLIC_IPV6: tuple[Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        (
            "2001::/23",  # protocols, Teredo among them
            "2001:db8::/32",  # documents
            "2002::/16",  # 6to4, which holds an IPv4 address
            "3fff::/20",  # documents
        ),
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how networks without IPv4 reach it


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_IPV4)
    inner = _inner_ipv4(address)
    if inner is not None:
        return is_public(inner)
    return address in _PUBLIC_IPV6 and not any(address in network for network in _NOT_PUBLIC_IPV6)


def _inner_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address to which a connection to this one goes."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


def is_own(address: Address) -> bool:
    """Tells whether it is an address of this machine, whose services may be closed to others."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(
                (str(address), 1)
            )  # sends nothing: it finds out from where something would be sent
            return str(probe.getsockname()[0]) == str(address)
    except OSError:  # there is no way to it
        return False
