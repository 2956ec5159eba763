"""Downloads pictures, videos and PDFs from allowed hosts with one plain GET each. Redirects are not
followed.

There are no proxies, cookies, persistent connections and content encodings. The host name is
resolved here, and the connection goes to a checked address; TLS checks the name. Importing this
module takes a quarter of a second.
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
from ouzel.outbound.hosts import Resolve, Target, checked_addresses
from ouzel.outbound.network import CheckedNetwork
from ouzel.prompts.media.picture import PictureLimits, check_file_size

logger = logging.getLogger(__name__)

_OK = 200
_REDIRECTS = range(300, 400)
_MAX_PIECES = 2000  # pieces of any length: each takes time of the event loop
_MIN_BYTES_PER_PIECE = 512  # least average of the pieces beyond the first _MAX_PIECES
_PIECES_AT_A_TIME = 32
_MAX_AT_A_TIME = 16  # downloads of all requests; each may hold a file of the largest size


class Downloads:
    """Downloads files. It belongs to one event loop."""

    def __init__(
        self,
        allowed: AllowedHosts,
        timeout_s: float,
        resolve: Resolve,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """Without `ssl_context`, the machine's certificates are read and used."""
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._resolve = resolve
        self._ssl_context = default_ssl_context() if ssl_context is None else ssl_context
        self._free = asyncio.Semaphore(_MAX_AT_A_TIME)

    async def download(self, target: Target, path: str, limits: PictureLimits) -> bytes:
        """Downloads one file from an allowed host. Raises InvalidRequest, also for faults of the
        other server.
        """
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
                logger.debug("media download: no connection to %s: %s", target.host_header, error)
                reason = "cannot be connected to"
                if _is_certificate_error(error):
                    reason = "has no valid certificate"
                raise _failed(target, reason, path) from None
            except (NetworkError, ProtocolError, OSError) as error:  # TLS raises OSError
                logger.debug("media download: %s failed: %s", target.host_header, error)
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
                        )  # buffered pieces arrive without giving up the event loop
        return bytes(data)

    @asynccontextmanager
    async def _answer(self, target: Target, addresses: Sequence[str]) -> AsyncIterator[Response]:
        url = URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        headers = [
            ("Host", target.host_header),
            ("User-Agent", "ouzel"),
            (
                "Accept",
                "image/png, image/jpeg, image/webp, image/gif, image/bmp, "
                "video/*;q=0.5, application/pdf;q=0.5",
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
    """Raises InvalidRequest for an unusable answer. The message quotes nothing that the server
    wrote.
    """
    if response.status in _REDIRECTS:
        raise _failed(target, f"redirects (status {response.status}), which is not followed", path)
    if response.status != _OK:
        raise _failed(target, f"answered with the status {response.status}", path)
    headers = {name.lower(): value for name, value in response.headers}
    if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
        raise _failed(
            target, "sent an encoded file (Content-Encoding), which was not requested", path
        )
    length = headers.get(b"content-length", b"")
    if length.isdigit():
        check_file_size(int(length), path, limits)


def _is_certificate_error(error: BaseException) -> bool:
    return isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError)


def _failed(target: Target, reason: str, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be a URL of a picture, a video or a PDF, and {target.host_header!r} {reason}",
        field=path,
    )
