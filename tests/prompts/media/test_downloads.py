"""Pictures are downloaded from other servers, which all run on this machine here."""

import asyncio
import re
import ssl
import zlib
from collections.abc import Awaitable, Callable

import pytest
import trustme

from ouzel.config import MediaConfig
from ouzel.errors import InvalidRequest
from ouzel.prompts.media.loader import MediaLoader
from tests.prompts.media.files import PATH, plain
from tests.prompts.media.servers import Answer, http, load, loader, serving

PICTURE = plain()


async def refusal(media: MediaLoader, url: str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        await load(media, url)
    assert raised.value.param == PATH
    return str(raised.value).removeprefix(PATH + " ")


def resolver(*addresses: str) -> Callable[[str, int], Awaitable[list[str]]]:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


async def test_a_picture_is_asked_for_plainly() -> None:
    async with serving(http(PICTURE, headers="Content-Type: text/plain\r\n")) as server:
        media = loader(allowed_media_domains=(server.address,))
        [picture] = await load(
            media, f"http://{server.address}/a b.png?x=1#top".replace(" ", "%20")
        )

    assert picture.data == PICTURE
    [head] = server.heads
    first_line, *headers = head.decode().strip().split("\r\n")
    assert first_line == "GET /a%20b.png?x=1 HTTP/1.1"
    assert {line.partition(":")[0].lower() for line in headers} == {
        *("host", "user-agent", "accept", "accept-encoding", "connection")
    }
    assert f"Host: {server.address}" in headers
    assert "Accept-Encoding: identity" in headers


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\n" + PICTURE,
        b"HTTP/1.0 200 OK\r\n\r\n" + PICTURE,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + http(PICTURE),
        http(PICTURE, headers="Content-Encoding: identity\r\n"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
        % (len(PICTURE), PICTURE),
    ],
)
async def test_ways_to_answer(answer: bytes) -> None:
    async with serving(answer) as server:
        [picture] = await load(
            loader(allowed_media_domains=(server.address,)), f"http://{server.address}/"
        )

    assert picture.data == PICTURE


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(bytes(65536))
        await writer.drain()


async def endless_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-More: " + b"x" * 1000 + b"\r\n")
        await writer.drain()


async def endless_hints(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
        await writer.drain()


async def endless_chunks(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\nx\r\n" * 1000)
        await writer.drain()


def dripping(beginning: bytes) -> Answer:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        while True:
            await asyncio.sleep(0.01)
            writer.write(b"x")
            await writer.drain()

    return drip


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


BROKEN = "broke off, or did not speak HTTP"
SLOW = r"took longer than 0\.3 s \(media_timeout_s\)"
LONG = r"must have <= 4096 bytes \(max_media_bytes\), given \d+"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (http(b"secret", "404 Not Found"), "answered with the status 404"),
        (http(b"secret", "500 Secret"), "answered with the status 500"),
        (http(b"secret", "204 No Content"), "answered with the status 204"),
        (http(PICTURE, "206 Partial Content"), "answered with the status 206"),
        (
            http(b"", "302 Found", "Location: http://secret/\r\n"),
            r"redirects \(status 302\), which is not followed",
        ),
        (http(b"", "304 Not Modified"), "redirects"),
        (http(b"secret"), r"must be a picture .*, given 6 bytes of another format"),
        (http(b""), r"must be a picture .*, given 0 bytes of another format"),
        (
            http(zlib.compress(PICTURE), headers="Content-Encoding: deflate\r\n"),
            "sent an encoded file",
        ),
        (http(PICTURE, headers="Content-Encoding: secret\r\n"), "sent an encoded file"),
        (http(b"x" * 4097), r"must have <= 4096 bytes \(max_media_bytes\), given 4097"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", LONG),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\nsecret", BROKEN),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nsecret", BROKEN),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nsecret", BROKEN),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nsecret", BROKEN),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret", BROKEN),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", BROKEN),
        (b"HTTP/1.1 200 OK\r\nX\r\n\r\nsecret", BROKEN),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\nsecret", BROKEN),
        (
            b"HTTP/2.0 200 OK\r\n\r\nsecret",
            r"must be a picture .*, given 6 bytes of another format",
        ),
        (b"SSH-2.0-secret\r\n", BROKEN),
        (b"\0\1\2\3" * 100, BROKEN),
        (b"", BROKEN),
        (b"HTTP/1.1", BROKEN),
        (endless, LONG),
        (endless_chunks, "sends the file in pieces that are too small"),
        (endless_head, BROKEN),
        (endless_hints, SLOW),
        (silent, SLOW),
        (dripping(b"HTTP/1.1 200 OK\r\n\r\n"), SLOW),
        (dripping(b"HTTP/1.1 200 OK\r\nX-Slow: "), SLOW),
    ],
)
async def test_faults_of_the_other_server_are_reported_without_its_text(
    answer: bytes | Answer, message: str
) -> None:
    async with serving(answer) as server:
        # Only the slow answers may time out; the others get time enough on a busy machine.
        timeout_s = 0.3 if message == SLOW else 30.0
        media = loader(
            allowed_media_domains=(server.address,), max_media_bytes=4096, media_timeout_s=timeout_s
        )
        told = await refusal(media, f"http://{server.address}/secret-path")
        # The server soon sees that its client has left; the silent one never looks.
        while server.num_open and answer is not silent:
            await asyncio.sleep(0.005)

    assert re.search(message, told)
    assert "secret" not in told
    assert server.address in told or "must have <=" in told or "must be a picture" in told
    assert server.num_connections == 1


async def test_a_redirect_is_not_followed() -> None:
    async with serving(http(PICTURE)) as inside:
        redirect = http(b"", "302 Found", f"Location: http://{inside.address}/\r\n")
        async with serving(redirect) as server:
            media = loader(allowed_media_domains=(server.address, inside.address))
            assert "redirects" in await refusal(media, f"http://{server.address}/")

    assert (server.num_connections, inside.num_connections) == (1, 0)


@pytest.mark.parametrize(
    ("entries", "addresses"),
    [
        (("pictures.example.org:{port}",), ("127.0.0.1",)),
        (("pictures.example.org:{port}",), ("192.0.1.1", "127.0.0.1")),
        (("pictures.example.org:{port}",), ("::ffff:127.0.0.1",)),
        (("pictures.example.org:{port}", "all", "127.0.0.1", "127.0.0.1:1"), ("127.0.0.1",)),
        (("all", "127.0.0.1:{port}"), ("127.0.0.1",)),
    ],
)
async def test_only_named_hosts_are_connected_to(
    entries: tuple[str, ...], addresses: tuple[str, ...]
) -> None:
    async with serving(http(PICTURE)) as server:
        entries = tuple(entry.format(port=server.port) for entry in entries)
        media = loader(resolver(*addresses), allowed_media_domains=entries)
        told = await refusal(media, f"http://pictures.example.org:{server.port}/")

    assert "must be of a host" in told
    assert server.num_connections == 0


async def test_the_connection_is_to_the_address_that_was_checked() -> None:
    """The name server gives another address to the second question."""
    answers = [["127.0.0.1"], ["192.0.2.1"], ["192.0.2.1"]]
    num_questions = 0

    async def resolve(host: str, port: int) -> list[str]:
        nonlocal num_questions
        num_questions += 1
        return answers[num_questions - 1]

    async with serving(http(PICTURE)) as server:
        entries = (f"pictures.example.org:{server.port}", server.address)
        [picture] = await load(
            loader(resolve, allowed_media_domains=entries),
            f"http://pictures.example.org:{server.port}/",
        )

    assert (picture.data, num_questions) == (PICTURE, 1)
    assert f"Host: pictures.example.org:{server.port}\r\n".encode() in server.heads[0]


async def test_an_address_at_which_nobody_listens_is_followed_by_the_next() -> None:
    async with serving(http(PICTURE)) as server:
        entries = (f"pictures.example.org:{server.port}", f"[::1]:{server.port}", server.address)
        media = loader(resolver("::1", "127.0.0.1"), allowed_media_domains=entries)
        [picture] = await load(media, f"http://pictures.example.org:{server.port}/")

    assert picture.data == PICTURE


async def test_a_server_that_is_not_there() -> None:
    async with serving(b"") as server:
        pass
    media = loader(allowed_media_domains=(server.address,))

    assert await refusal(media, f"http://{server.address}/") == (
        f"must be a URL of a picture, a video or a PDF, and '{server.address}' cannot "
        "be connected to"
    )


async def test_a_name_that_takes_long_to_find() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    media = loader(resolve, allowed_media_domains=("a.org",), media_timeout_s=0.1)

    assert await refusal(media, "http://a.org/") == (
        "must be a URL of a picture, a video or a PDF, and 'a.org' took longer than 0.1 s "
        "(media_timeout_s)"
    )


async def test_a_name_that_the_machine_does_not_know() -> None:
    media = loader(allowed_media_domains=("nothing.invalid",))

    assert await refusal(media, "http://nothing.invalid/") == (
        "must be of a host with public addresses, and 'nothing.invalid' has none"
    )


async def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(http(PICTURE)) as server, serving(http(b"of the proxy")) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{proxy.address}")
        [picture] = await load(
            loader(allowed_media_domains=(server.address,)), f"http://{server.address}/"
        )

    assert (picture.data, proxy.num_connections) == (PICTURE, 0)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def contexts(authority: trustme.CA, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Returns the TLS context of a server with this name, and the context of its clients."""
    of_server, of_clients = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(name).configure_cert(of_server)
    authority.configure_trust(of_clients)
    return of_server, of_clients


async def test_the_certificate_must_have_the_name_of_the_url(authority: trustme.CA) -> None:
    of_server, of_clients = contexts(authority, "pictures.example.org")
    async with serving(http(PICTURE), of_server) as server:
        entries = tuple(
            f"{host}:{server.port}"
            for host in ("pictures.example.org", "other.example.org", "127.0.0.1")
        )

        def media(context: ssl.SSLContext) -> MediaLoader:
            return loader(resolver("127.0.0.1"), context, allowed_media_domains=entries)

        of_machine = MediaLoader(
            MediaConfig(allowed_media_domains=entries), resolve=resolver("127.0.0.1")
        )
        [picture] = await load(media(of_clients), f"https://pictures.example.org:{server.port}/")
        others = [
            await refusal(media(of_clients), f"https://other.example.org:{server.port}/"),
            await refusal(media(of_clients), f"https://127.0.0.1:{server.port}/"),
            await refusal(of_machine, f"https://pictures.example.org:{server.port}/"),
        ]
        without_tls = await refusal(
            media(of_clients), f"http://pictures.example.org:{server.port}/"
        )

    assert picture.data == PICTURE
    assert all(told.endswith("has no valid certificate") for told in others)
    assert without_tls.endswith(BROKEN)
    assert len(server.heads) == 1


async def test_tls_to_a_server_without_tls_is_refused(authority: trustme.CA) -> None:
    _, of_clients = contexts(authority, "x")
    async with serving(http(PICTURE)) as server:
        media = loader(
            None, of_clients, allowed_media_domains=(server.address,), media_timeout_s=0.3
        )
        told = await refusal(media, f"https://{server.address}/")

    assert told.startswith(f"must be a URL of a picture, a video or a PDF, and '{server.address}' ")


async def test_downloads_of_a_request_run_side_by_side() -> None:
    together = asyncio.Barrier(8)

    async def answer(writer: asyncio.StreamWriter) -> None:
        await together.wait()
        writer.write(http(PICTURE))
        await writer.drain()

    async with serving(answer) as server:
        media = loader(allowed_media_domains=(server.address,), media_timeout_s=86_400)
        pictures = await load(media, *(f"http://{server.address}/{number}" for number in range(8)))

    assert [picture.data for picture in pictures] == [PICTURE] * 8


async def test_a_request_that_is_left_leaves_no_connection() -> None:
    async with serving(silent) as server:
        media = loader(allowed_media_domains=(server.address,))
        loading = asyncio.create_task(
            load(media, *(f"http://{server.address}/{number}" for number in range(4)))
        )
        while server.num_open < 4:
            await asyncio.sleep(0.005)

        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading

        assert not [task for task in asyncio.all_tasks() if "MediaLoader" in repr(task)]


async def test_a_failure_ends_all_downloads_of_its_request() -> None:
    async with serving(silent) as slow, serving(http(b"", "404 Not Found")) as wrong:
        media = loader(allowed_media_domains=(slow.address, wrong.address), media_timeout_s=86_400)
        with pytest.raises(InvalidRequest, match="status 404"):
            await load(media, f"http://{slow.address}/", f"http://{wrong.address}/")


async def test_the_same_url_is_downloaded_once() -> None:
    async with serving(http(PICTURE)) as server:
        one, other = await load(
            loader(allowed_media_domains=(server.address,)),
            f"http://{server.address}/",
            f"http://{server.address}/",
        )

    assert one is other
    assert server.num_connections == 1
