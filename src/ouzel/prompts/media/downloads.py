"""Pictures, videos and PDFs come from hosts that the options name, by one plain GET each, and nothing is followed.

There are no proxies, cookies, kept connections and content encodings. The name of a host is resolved here, and the
connection is to an address that was checked; TLS checks the name. Who imports this waits a quarter of a second.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

from httpcore2 import (
    URL,
    AsyncHTTPConnection,
    ConnectError,
    ConnectTimeout,
    NetworkError,
    Origin,
    ProtocolError,
    Request,
    Response,
    default_ssl_context,
)

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import InvalidRequest
from ouzel.prompts.media.hosts import Resolve, Target, checked_addresses
from ouzel.prompts.media.network import CheckedNetwork
from ouzel.prompts.media.picture import PictureLimits, check_file_size

logger = logging.getLogger(__name__)

_OK = 200
_REDIRECTS = range(300, 400)
_MAX_PIECES = 2000  # of any length: each takes a while of the event loop
_MIN_BYTES_PER_PIECE = 512  # on average, of all pieces beyond the first _MAX_PIECES
_PIECES_AT_A_TIME = 32
_MAX_AT_A_TIME = 16  # of all requests; each may hold a file of the allowed length


class Downloads:
    """Belongs to one event loop."""

    def __init__(
        self,
        allowed: AllowedHosts,
        timeout_s: float,
        resolve: Resolve,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """Without `ssl_context` the certificates of the machine count; they are read at once."""
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._resolve = resolve
        self._ssl_context = default_ssl_context() if ssl_context is None else ssl_context
        self._free = asyncio.Semaphore(_MAX_AT_A_TIME)

    async def download(self, target: Target, path: str, limits: PictureLimits) -> bytes:
        """Asks a host that is allowed. Raises InvalidRequest, also for what is the other server's fault."""
        async with self._free:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._get(target, path, limits)
            except TimeoutError:
                raise _failed(
                    target, f"took longer than {self._timeout_s:g} s (media_timeout_s)", path
                ) from None
            except ConnectTimeout:
                raise _failed(target, "does not answer", path) from None
            except ConnectError as error:
                logger.debug("no connection to %s for a picture: %s", target.host_header, error)
                reason = (
                    "has no valid certificate"
                    if _is_certificates(error)
                    else "cannot be connected to"
                )
                raise _failed(target, reason, path) from None
            except (NetworkError, ProtocolError, OSError) as error:  # the last: of TLS
                logger.debug("no picture from %s: %s", target.host_header, error)
                raise _failed(target, "broke off, or did not speak HTTP", path) from None

    async def _get(self, target: Target, path: str, limits: PictureLimits) -> bytes:
        addresses = await checked_addresses(target, self._allowed, self._resolve, path)
        async with self._answer(target, addresses) as response:
            _check_answer(response, target, path, limits)
            data, num_pieces = bytearray(), 0
            async with aclosing(response.aiter_stream()) as pieces:
                async for piece in pieces:
                    data += piece
                    num_pieces += 1
                    check_file_size(len(data), path, limits)
                    if num_pieces > _MAX_PIECES + len(data) // _MIN_BYTES_PER_PIECE:
                        raise _failed(target, "sends the file in pieces that are too small", path)
                    if num_pieces % _PIECES_AT_A_TIME == 0:
                        await asyncio.sleep(
                            0
                        )  # pieces that are buffered already come without a pause
        return bytes(data)

    @asynccontextmanager
    async def _answer(self, target: Target, addresses: Sequence[str]) -> AsyncIterator[Response]:
        url = URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        headers = [
            ("Host", target.host_header),
            ("User-Agent", "ouzel"),
            (
                "Accept",
                "image/png, image/jpeg, image/webp, image/gif, image/bmp, video/*;q=0.5, application/pdf;q=0.5",
            ),
            ("Accept-Encoding", "identity"),
            ("Connection", "close"),
        ]
        network = CheckedNetwork(addresses, self._timeout_s / len(addresses))
        connection = AsyncHTTPConnection(
            Origin(url.scheme, url.host, target.port),
            ssl_context=self._ssl_context,
            network_backend=network,
        )
        try:
            yield await connection.handle_async_request(Request("GET", url, headers=headers))
        finally:
            await connection.aclose()
            await network.aclose()


def _check_answer(response: Response, target: Target, path: str, limits: PictureLimits) -> None:
    """Raises InvalidRequest. Nothing that the server wrote is shown."""
    if response.status in _REDIRECTS:
        raise _failed(target, f"redirects (status {response.status}), which is not followed", path)
    if response.status != _OK:
        raise _failed(target, f"answered with the status {response.status}", path)
    headers = {name.lower(): value for name, value in response.headers}
    if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
        raise _failed(
            target, "sent an encoded file (Content-Encoding), which was not asked for", path
        )
    length = headers.get(b"content-length", b"")
    if length.isdigit():
        check_file_size(int(length), path, limits)


def _is_certificates(error: BaseException) -> bool:
    return isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError)


def _failed(target: Target, reason: str, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be a URL of a picture, a video or a PDF, and {target.host_header!r} {reason}",
        field=path,
    )
