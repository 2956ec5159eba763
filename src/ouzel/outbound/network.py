"""Connects only to addresses that were checked, not to the host in the request."""

from collections.abc import Iterable, Sequence

from httpcore2 import (
    AnyIOBackend,
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
)

SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


class CheckedNetwork(AsyncNetworkBackend):
    """Connects one exchange with another server."""

    def __init__(self, addresses: Sequence[str], attempt_timeout_s: float) -> None:
        """The addresses are tried in order, each for `attempt_timeout_s`."""
        self._addresses = addresses
        self._attempt_timeout_s = attempt_timeout_s
        self._tcp = AnyIOBackend()
        self._stream: AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the signature is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> AsyncNetworkStream:
        """Connects to the first address that answers; `host` is ignored.

        Raises ConnectError or ConnectTimeout.
        """
        failure: Exception = ConnectError("there are no addresses")
        for address in self._addresses:
            try:
                self._stream = await self._tcp.connect_tcp(
                    address, port, timeout=self._attempt_timeout_s
                )
                return self._stream
            except (ConnectError, ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        """Closes the connection. httpcore2 does not close it if the exchange is cancelled during
        the TLS handshake.
        """
        if self._stream is not None:
            await self._stream.aclose()
