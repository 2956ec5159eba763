"""Orders to a process that forks, with file descriptors, and its answers."""

import json
import socket
from typing import Any  # JSON

_SIZE_BYTES = 8


def connection_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def send_order(connection: socket.socket, order: dict[str, Any], fds: list[int]) -> None:
    payload = json.dumps(order).encode()
    socket.send_fds(connection, [len(payload).to_bytes(_SIZE_BYTES, "big")], fds)
    connection.sendall(payload)


def receive_order(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Returns the next order and its descriptors; None when the sender has ended."""
    header, fds, _, _ = socket.recv_fds(connection, _SIZE_BYTES, 8)
    if not header:
        return None
    order: dict[str, Any] = json.loads(_read(connection, int.from_bytes(header, "big")))
    return order, fds


def send_pid(connection: socket.socket, pid: int) -> None:
    connection.sendall(pid.to_bytes(_SIZE_BYTES, "big"))


def receive_pid(connection: socket.socket) -> int:
    return int.from_bytes(_read(connection, _SIZE_BYTES), "big")


def _read(connection: socket.socket, size: int) -> bytes:
    payload = b""
    while len(payload) < size:
        part = connection.recv(size - len(payload))
        if not part:
            raise ConnectionError("the process that forks has ended")
        payload += part
    return payload
