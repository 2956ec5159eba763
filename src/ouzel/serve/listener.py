"""Binds the address of the server: a port or a unix socket, with TLS or without.

The address is bound when the process starts, so that an address in use is reported at once. The
socket listens when the model is loaded: a client that connects finds a served model.
"""

import contextlib
import errno
import os
import socket
import ssl
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ouzel.config import ObservabilityConfig, ServerConfig
from ouzel.options.invalid_option import CannotListen
from ouzel.serve.tls import tls_context

_HINTS = {
    errno.EADDRINUSE: "; stop the program that listens there, or choose another port with {flag} "
    "(0: a free port)",
    errno.EADDRNOTAVAIL: "; no network interface of this machine has this address",
    errno.EACCES: "; ports below 1024 need privileges: choose another with {flag}",
}


class UnixPath:
    """Removes a bound unix socket, unless a later server has replaced it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = _identity(path)

    def is_ours(self) -> bool:
        return self._identity == _identity(self.path)

    def remove(self) -> None:
        if self.is_ours():
            self.path.unlink()


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound socket, which does not listen yet."""

    socket: socket.socket
    tls: ssl.SSLContext | None
    address: str  # the text of messages
    unix: UnixPath | None = None

    @property
    def url(self) -> str:
        """Returns the URL by which a client on this machine reaches the server."""
        scheme = "http" if self.tls is None else "https"
        if self.unix is not None:
            return f"{scheme}://localhost"
        host, port = self.socket.getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
            host, f"[{host}]" if ":" in host else host
        )
        return f"{scheme}://{shown}:{port}"


@contextlib.contextmanager
def bind_listeners(
    server: ServerConfig, observability: ObservabilityConfig
) -> Iterator[tuple[Listener, Listener | None]]:
    """Takes the address of the API, and the port of the metrics if they have one of their own.

    Gives both back at the end of the block. Raises InvalidOption.
    """
    with _bind_api(server) as listener:
        if observability.metrics_port is None:
            yield listener, None
            return
        host = observability.metrics_host or server.host
        port = observability.metrics_port
        with _bind_port(host, port, "--metrics-port") as bound_socket:
            yield listener, Listener(bound_socket, None, f"{host} port {port}")


@contextlib.contextmanager
def _bind_api(config: ServerConfig) -> Iterator[Listener]:
    tls = tls_context(config)
    if config.uds:
        path = Path(config.uds)
        bound_socket = _bind_unix(path)
        listener = Listener(bound_socket, tls, config.uds, UnixPath(path))
    else:
        bound_socket = _bind_port(config.host, config.port, "--port")
        listener = Listener(bound_socket, tls, f"{config.host} port {config.port}")
    try:
        yield listener
    finally:
        bound_socket.close()
        if listener.unix is not None:
            listener.unix.remove()


def _identity(path: Path) -> tuple[int, int] | None:
    """Returns inode and modification time, since inode numbers are reused; None without a file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _bind_port(host: str, port: int, flag: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        hint = _HINTS.get(error.errno or 0, "").format(flag=flag)
        raise CannotListen(
            f"cannot listen on {host} port {port}: {error.strerror}{hint}"
        ) from error
    return listener


def _bind_unix(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        listener.bind(os.fspath(path))
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from error
    except CannotListen:
        listener.close()
        raise
    return listener


def _remove_stale(path: Path) -> None:
    """Removes the socket of a server that is gone.

    Raises CannotListen if a server listens on it, or the path is another file.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise CannotListen(f"cannot listen on {path}: the path is a file, and no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise CannotListen(f"cannot listen on {path}: it is in use")
