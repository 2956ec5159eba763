"""Pages that do harm become text or an error, and the next page is read as before."""

import asyncio
from collections.abc import Iterator

import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.records import WebError
from tests.hosted_tools.hostile_web import HostileWeb, running_hostile_web
from tests.hosted_tools.web_servers import Web, running_web


@pytest.fixture
def evil() -> Iterator[HostileWeb]:
    with running_hostile_web() as evil:
        yield evil


@pytest.fixture
def web() -> Iterator[Web]:
    with running_web() as web:
        yield web


def open_pages(*ports: int, hosts: tuple[str, ...] = (), timeout_s: float = 60.0) -> Pages:
    listed = (*hosts, *(f"127.0.0.1:{port}" for port in ports))
    return Pages(read_media_hosts(listed, "web_fetch_hosts"), timeout_s=timeout_s)


@pytest.fixture
def pages(web: Web, evil: HostileWeb) -> Iterator[Pages]:
    pages = open_pages(web.port, evil.port)
    yield pages
    pages.close()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/endless", "more than 8388608 bytes"),
        ("/gzip-by-header", "compressed"),
        ("/shorter", "cannot be fetched"),
        ("/no-http", "cannot be fetched"),
        ("/long-header", "cannot be fetched"),
        ("/missing", "status 404"),
    ],
)
async def test_the_fault_of_a_page_is_named(
    evil: HostileWeb, web: Web, pages: Pages, path: str, message: str
) -> None:
    with pytest.raises(WebError, match=message):
        await pages.fetch(evil.url(path))
    assert (await pages.fetch(web.url("/otters"))).title == "Otters"


@pytest.mark.parametrize("path", ["/zlib-charset", "/punycode", "/gzip-as-text"])
async def test_charsets_that_are_traps_are_not_used(
    evil: HostileWeb, pages: Pages, path: str
) -> None:
    assert (await pages.fetch(evil.url(path))).text


@pytest.mark.parametrize("path", ["/silent", "/stopped"])
async def test_a_page_that_hangs_is_given_up(evil: HostileWeb, path: str) -> None:
    pages = open_pages(evil.port, timeout_s=0.2)
    with pytest.raises(WebError, match="did not come within"):
        await pages.fetch(evil.url(path))
    pages.close()


async def test_a_cancelled_fetch_leaves_the_site(evil: HostileWeb, pages: Pages) -> None:
    fetch = asyncio.create_task(pages.fetch(evil.url("/stopped")))
    await asyncio.to_thread(evil.has_hung.wait)
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<",
        "\0\x01",
        "<div>" * 1_600_000,
        "<html><body>" + "<table><tr><td>" * 500_000,
        "<html>" + "a" * 3_000_000,
        "<html><body>" + "<p " + "a=1 " * 2_000_000 + ">",
        "<!DOCTYPE html [<!ENTITY a 'aaaaaaaaaa'>" + "&a;" * 200_000 + "]><html>&a;</html>",
        "<html><body>" + "&#x41;" * 1_300_000,
    ],
    ids=["empty", "open", "null", "nested", "tables", "long", "attributes", "entities", "escapes"],
)
async def test_hostile_html_is_text_or_an_error(web: Web, pages: Pages, html: str) -> None:
    web.add("/bad", html)
    try:
        assert len((await pages.fetch(web.url("/bad"))).text) <= 2**20
    except WebError as error:
        assert "cannot be read" in str(error)
    assert (await pages.fetch(web.url("/otters"))).title == "Otters"


@pytest.mark.parametrize(
    "pdf", [b"", b"%PDF-1.7", b"%PDF-1.7\n" + b"1 0 obj<</Length 9>>stream\n" * 1000]
)
async def test_a_broken_pdf_is_named(web: Web, pages: Pages, pdf: bytes) -> None:
    web.add("/bad", pdf, "application/pdf")
    with pytest.raises(WebError, match="cannot be read"):
        await pages.fetch(web.url("/bad"))


@pytest.mark.parametrize("location", ["http://[::1", "http://", "//", "\\\\evil", "javascript:x"])
async def test_a_redirect_to_nowhere_is_named(web: Web, pages: Pages, location: str) -> None:
    web.redirect("/out", location)
    with pytest.raises(WebError):
        await pages.fetch(web.url("/out"))


@pytest.mark.parametrize(
    "url", ["", "x", "file:///etc/passwd", "http://[", "http://a b", "http://"]
)
async def test_a_text_that_is_no_web_address_is_named(pages: Pages, url: str) -> None:
    with pytest.raises(WebError, match="the URL"):
        await pages.fetch(url)


async def test_a_bomb_in_a_page_is_not_unpacked(evil: HostileWeb, pages: Pages) -> None:
    assert len((await pages.fetch(evil.url("/gzip-as-html"))).text) < 10_000


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost.", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"],
)
async def test_every_public_host_does_not_include_private_ones(host: str) -> None:
    pages = open_pages(hosts=("all",))
    with pytest.raises(WebError, match="public addresses"):
        await pages.fetch(f"http://{host}/")
    pages.close()
