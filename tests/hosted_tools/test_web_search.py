"""Search engines are asked and pages fetched: faults are named, private hosts never reached."""

import json
from collections.abc import Iterator

import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.providers import is_of_domain, make_provider
from ouzel.hosted_tools.web_search.records import Query, SearchProvider, WebError
from tests.hosted_tools.web_servers import Web, running_web

OTTERS = Query("otters", 5)


@pytest.fixture
def web() -> Iterator[Web]:
    with running_web() as web:
        yield web


@pytest.fixture
def pages(web: Web) -> Iterator[Pages]:
    allowed = read_media_hosts((f"127.0.0.1:{web.port}",), "web_fetch_hosts")
    pages = Pages(allowed, timeout_s=60.0)
    yield pages
    pages.close()


def provider(web: Web, name: str) -> SearchProvider:
    path = "" if name == "searxng" else f"/{name}"
    return make_provider(name, web.url(path), "k3y", timeout_s=60.0)


@pytest.mark.parametrize("name", ["searxng", "brave", "tavily"])
async def test_hits_are_read_from_each_engine(web: Web, name: str) -> None:
    first, *_ = await provider(web, name).search(OTTERS)
    assert (first.title, first.url) == ("Otters", web.url("/otters"))
    assert first.snippet


async def test_entries_without_a_web_address_are_left_out(web: Web) -> None:
    hits = await provider(web, "searxng").search(OTTERS)
    assert [hit.title for hit in hits] == ["Otters", "Seals"]


async def test_keys_are_sent_in_headers_only(web: Web) -> None:
    await provider(web, "brave").search(Query("otters", 5, country="DE"))
    path, headers, _ = web.requests[-1]
    assert headers["X-Subscription-Token"] == "k3y"
    assert "k3y" not in path and "country=DE" in path
    await provider(web, "tavily").search(Query("otters", 5, domains=("127.0.0.1",)))
    _, headers, body = web.requests[-1]
    assert headers["Authorization"] == "Bearer k3y"
    assert json.loads(body) == {
        "query": "otters",
        "max_results": 5,
        "include_domains": ["127.0.0.1"],
    }


async def test_domains_limit_the_hits(web: Web) -> None:
    query = Query("otters", 5, domains=("example.org",))
    assert [hit.title for hit in await provider(web, "searxng").search(query)] == ["Seals"]
    assert "site%3Aexample.org" in web.requests[-1][0]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, b"", "answered with the status 403"),
        (200, b"<html>", "did not answer with JSON"),
        (200, b"[]", "did not answer with JSON"),
        (200, b"x" * 5 * 2**20, "more than"),
    ],
)
async def test_a_fault_of_an_engine_is_named(
    web: Web, status: int, body: bytes, message: str
) -> None:
    web.add("/search", body, status=status)
    with pytest.raises(WebError, match=message):
        await provider(web, "searxng").search(OTTERS)


@pytest.mark.parametrize(
    ("name", "message"), [("searxng", "web_search_url"), ("brave", "web_search_key")]
)
def test_a_missing_option_is_named(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_provider(name, "", "", timeout_s=1.0)


@pytest.mark.parametrize(
    ("url", "is_inside"),
    [
        ("https://example.org/a", True),
        ("https://www.example.org", True),
        ("https://badexample.org", False),
        ("https://example.org.evil.com", False),
        ("nonsense", False),
    ],
)
def test_domains_contain_their_subdomains_only(url: str, is_inside: bool) -> None:
    assert is_of_domain(url, ["example.org"]) == is_inside


async def test_a_page_becomes_readable_text(web: Web, pages: Pages) -> None:
    page = await pages.fetch(web.url("/otters"))
    assert page.title == "Otters"
    assert "hold hands while they sleep" in page.text
    assert "alert" not in page.text and "Contact" not in page.text


async def test_plain_text_needs_no_reader(web: Web, pages: Pages) -> None:
    web.add("/a.txt", "grüße".encode("latin-1"), "text/plain; charset=latin-1")
    assert (await pages.fetch(web.url("/a.txt"))).text == "grüße"


async def test_redirects_are_followed_and_checked_again(web: Web, pages: Pages) -> None:
    web.redirect("/old", "/otters")
    assert (await pages.fetch(web.url("/old"))).url == web.url("/otters")
    for target in ("http://127.0.0.1:1/", "http://169.254.169.254/latest", "file:///etc/passwd"):
        web.redirect("/out", target)
        with pytest.raises(WebError, match="the URL must"):
            await pages.fetch(web.url("/out"))
    web.redirect("/loop", "/loop")
    with pytest.raises(WebError, match="redirects more than 5 times"):
        await pages.fetch(web.url("/loop"))


async def test_robots_are_respected_and_asked_once(web: Web, pages: Pages) -> None:
    web.add("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain")
    web.add("/private", "secret", "text/plain")
    with pytest.raises(WebError, match=r"robots\.txt"):
        await pages.fetch(web.url("/private"))
    await pages.fetch(web.url("/otters"))
    paths = [path for path, _, _ in web.requests]
    assert paths == ["/robots.txt", "/otters"]


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("image/png", b"x", "cannot be read: image/png"),
        ("text/html", b"x" * 5 * 2**20, "more than"),
    ],
)
async def test_a_page_that_cannot_be_read_is_named(
    web: Web, pages: Pages, kind: str, body: bytes, message: str
) -> None:
    web.add("/bad", body, kind)
    with pytest.raises(WebError, match=message):
        await pages.fetch(web.url("/bad"))


@pytest.mark.parametrize("body", ["", "<", "<div>" * 200_000, "\0\x01", "<html>" + "a" * 10**6])
async def test_hostile_html_is_text_or_an_error(web: Web, pages: Pages, body: str) -> None:
    web.add("/bad", body)
    try:
        assert isinstance((await pages.fetch(web.url("/bad"))).text, str)
    except WebError as error:
        assert "cannot be read" in str(error)
    assert (await pages.fetch(web.url("/otters"))).title == "Otters"


async def test_private_addresses_are_not_public_pages(web: Web) -> None:
    pages = Pages(read_media_hosts(("all",), "web_fetch_hosts"), timeout_s=60.0)
    with pytest.raises(WebError, match="web_fetch_hosts"):
        await pages.fetch(web.url("/otters"))
    with pytest.raises(WebError, match="public addresses"):
        await pages.fetch("http://127.0.0.1/")
    assert web.requests == []
    pages.close()
