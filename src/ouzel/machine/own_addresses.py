"""Lists the addresses of this machine's network interfaces, without sending anything."""

import fcntl
import socket
import struct
import sys
from ipaddress import ip_address
from pathlib import Path

# The ioctl of Linux takes a struct ifreq: a name of 16 bytes and then a sockaddr_in.
_GET_ADDRESS = 0x8915
_IFREQ_BYTES = 256
_V4_BYTES = slice(20, 24)
# Each line begins with an address in hexadecimal digits.
_V6_TABLE = Path("/proc/net/if_inet6")


def own_addresses(*, with_v6: bool) -> list[str]:
    """Returns the addresses that other machines may reach; none if the system is not Linux."""
    if sys.platform != "linux":
        return []
    return _v4_addresses() + (_v6_addresses() if with_v6 else [])


def _v4_addresses() -> list[str]:
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = struct.pack(f"{_IFREQ_BYTES}s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(asked.fileno(), _GET_ADDRESS, request)
            except OSError:  # the interface has no address
                continue
            found.append(socket.inet_ntoa(answer[_V4_BYTES]))
    return [address for address in found if not ip_address(address).is_loopback]


def _v6_addresses() -> list[str]:
    try:
        lines = _V6_TABLE.read_text().splitlines()
    except OSError:
        return []
    found = [ip_address(bytes.fromhex(line.split()[0])) for line in lines]
    return [str(address) for address in found if not (address.is_loopback or address.is_link_local)]
