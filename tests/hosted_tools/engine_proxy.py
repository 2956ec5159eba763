"""Stands for the public search engines: an HTTPS proxy that answers every host by itself."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import trustme

_END = b"\r\n\r\n"


@dataclass
class EngineProxy:
    port: int = 0
    ca_file: str = ""
    status: int = 200
    page: bytes = b""
    requests: list[bytes] = field(default_factory=list)  # the decrypted requests, without bodies


@contextmanager
def running_engines(directory: Path, *hosts: str) -> Iterator[EngineProxy]:
    """Yields a proxy that holds certificates for the hosts."""
    authority = trustme.CA()
    proxy = EngineProxy(ca_file=str(directory / "ca.pem"))
    authority.cert_pem.write_to_path(proxy.ca_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*hosts).configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy.port = listener.getsockname()[1]
        thread = threading.Thread(target=_accept, args=(listener, context, proxy))
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, context: ssl.SSLContext, proxy: EngineProxy) -> None:
    threads = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the test ends
            break
        threads.append(threading.Thread(target=_serve, args=(connection, context, proxy)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def _serve(connection: socket.socket, context: ssl.SSLContext, proxy: EngineProxy) -> None:
    """Answers one tunnel with one page."""
    with connection, suppress(OSError):  # the client may leave at any time
        _read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with context.wrap_socket(connection, server_side=True) as tunnel:
            proxy.requests.append(_read_head(tunnel))
            head = f"HTTP/1.1 {proxy.status} X\r\nConnection: close\r\nContent-Type: text/html\r\n"
            length = f"Content-Length: {len(proxy.page)}\r\n\r\n"
            tunnel.sendall(f"{head}{length}".encode() + proxy.page)
            tunnel.unwrap()


def _read_head(connection: socket.socket) -> bytes:
    data = b""
    while _END not in data:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionResetError
        data += piece
    return data
