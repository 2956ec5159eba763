"""Search engines are asked and pages fetched: faults are named, private hosts never reached."""

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.web_search.domains import Domains, read_domains
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.providers import make_provider
from ouzel.hosted_tools.web_search.records import Query, SearchProvider, WebError
from tests.hosted_tools.web_servers import Web, running_web

OTTERS = Query("otters", 5)


@pytest.fixture
def web() -> Iterator[Web]:
    with running_web() as web:
        yield web


@pytest.fixture
def pages(web: Web) -> Iterator[Pages]:
    hosts = (f"127.0.0.1:{web.port}", f"localhost:{web.port}")
    allowed = read_media_hosts(hosts, "web_fetch_hosts")
    pages = Pages(allowed, timeout_s=60.0)
    yield pages
    pages.close()


def provider(web: Web, name: str) -> SearchProvider:
    path = "" if name == "searxng" else f"/{name}"
    key = "" if name == "searxng" else "k3y"
    return make_provider(name, web.url(path), key, timeout_s=60.0)


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
    await provider(web, "tavily").search(
        Query("otters", 5, domains=read_domains(["127.0.0.1"], ["example.org"]))
    )
    _, headers, body = web.requests[-1]
    assert headers["Authorization"] == "Bearer k3y"
    assert json.loads(body) == {
        "query": "otters",
        "max_results": 20,
        "include_domains": ["127.0.0.1"],
        "exclude_domains": ["example.org"],
    }


async def test_domains_limit_the_hits(web: Web) -> None:
    query = Query("otters", 5, domains=read_domains(["example.org"]))
    assert [hit.title for hit in await provider(web, "searxng").search(query)] == ["Seals"]
    assert "site%3Aexample.org" in web.requests[-1][0]


async def test_long_lists_of_domains_do_not_lengthen_the_query(web: Web) -> None:
    listed = [f"site-{number}.example.org" for number in range(99)]
    for domains in (read_domains([*listed, "127.0.0.1"]), read_domains([], listed)):
        hits = await provider(web, "brave").search(Query("otters", 5, domains=domains))
        assert web.url("/otters") in [hit.url for hit in hits]
        query = parse_qs(urlsplit(web.requests[-1][0]).query)["q"][0]
        assert len(query) <= 400 and len(query.split()) <= 50


async def test_titles_and_extracts_are_plain_text(web: Web) -> None:
    hit = {"url": web.url("/a"), "title": "A &amp; B", "content": "x <b>y</b>\n &lt;z> "}
    web.add("/search", json.dumps({"results": [hit, hit]}), "application/json")
    [read] = await provider(web, "searxng").search(OTTERS)
    assert (read.title, read.snippet) == ("A & B", "x y <z>")


async def test_silent_engines_are_not_an_empty_web(web: Web) -> None:
    answer = {"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]}
    web.add("/search", json.dumps(answer), "application/json")
    with pytest.raises(WebError, match="CAPTCHA"):
        await provider(web, "searxng").search(OTTERS)


@pytest.mark.parametrize("country", ["de", "DE", "XY", None])
async def test_brave_gets_only_countries_that_it_knows(web: Web, country: str | None) -> None:
    await provider(web, "brave").search(Query("otters", 5, country=country))
    query = parse_qs(urlsplit(web.requests[-1][0]).query)
    assert query.get("country") == (["DE"] if country in ("de", "DE") else None)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, b"", "answered with the status 403"),
        (429, b"", "no further search now"),
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
    ("name", "url", "key", "message"),
    [
        ("searxng", "", "", "web_search_url: is required"),
        ("searxng", "http://x", "k", "web_search_key: must not be given"),
        ("brave", "", "", "web_search_key: is required"),
        ("tavily", "http://x", "", "web_search_key: is required"),
        ("ddgs", "http://x", "", "web_search_url: must not be given"),
        ("ddgs", "", "k", "web_search_key: must not be given"),
    ],
)
def test_a_wrong_option_is_named(name: str, url: str, key: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_provider(name, url, key, timeout_s=1.0)


@pytest.mark.parametrize("name", ["searxng", "brave", "tavily"])
async def test_hits_of_blocked_domains_are_left_out(web: Web, name: str) -> None:
    query = Query("otters", 5, domains=read_domains([], ["127.0.0.1"]))
    hits = await provider(web, name).search(query)
    assert web.url("/otters") not in [hit.url for hit in hits]


async def test_a_hit_with_a_broken_address_does_not_end_the_search(web: Web) -> None:
    broken = [{"title": "broken", "url": url} for url in ("http://[::1", "http://a b/", "http://")]
    hit = {"title": "Otters", "url": web.url("/otters"), "content": "x"}
    web.add("/search", json.dumps({"results": [*broken, hit]}), "application/json")
    assert [hit.title for hit in await provider(web, "searxng").search(OTTERS)] == ["Otters"]


@pytest.mark.parametrize("url", ["ftp://x", "x", "127.0.0.1:8888", "http://", "http://u:p@x"])
def test_an_address_that_is_no_web_address_is_named(url: str) -> None:
    with pytest.raises(InvalidRequest, match="must") as caught:
        make_provider("searxng", url, "", timeout_s=1.0)
    assert caught.value.param == "web_search_url"


@pytest.mark.parametrize(
    ("url", "is_inside"),
    [
        ("https://example.org/a", True),
        ("https://www.example.org", True),
        ("https://EXAMPLE.org.", True),
        ("https://badexample.org", False),
        ("https://example.org.evil.com", False),
        ("https://evil.com/?example.org", False),
        ("https://example.org@evil.com/", False),
        ("https://xn--mller-kva.de/a", True),
        ("https://shop.müller.de", True),
        ("nonsense", False),
        ("http://[::1", False),
    ],
)
def test_domains_contain_their_subdomains_only(url: str, is_inside: bool) -> None:
    listed = ["https://www.Example.org/path", "müller.de"]
    assert read_domains(listed).permit(url) == is_inside
    if url.startswith("https://") and "@" not in url:
        assert read_domains([], listed).permit(url) == (not is_inside)


def test_a_blocked_part_of_an_allowed_domain_stays_blocked() -> None:
    domains = read_domains(["example.org"], ["ads.example.org"])
    assert domains.permit("https://example.org/")
    assert not domains.permit("https://x.ads.example.org/")


@pytest.mark.parametrize("domain", ["", "a b", "https://", "x/../y", "1.2.3"])
def test_a_text_that_is_no_domain_is_named(domain: str) -> None:
    if domain == "x/../y":
        assert read_domains([domain]) == Domains(("x",))
    else:
        with pytest.raises(ValueError, match="host"):
            read_domains([domain])


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


async def test_a_redirect_cannot_leave_the_domains(web: Web, pages: Pages) -> None:
    web.redirect("/out", f"http://localhost:{web.port}/otters")
    for domains in (read_domains(["127.0.0.1"]), read_domains([], ["localhost"])):
        with pytest.raises(WebError, match="domain"):
            await pages.fetch(web.url("/out"), domains)
    assert "/otters" not in [path for path, _, _ in web.requests]


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
        ("text/html", b"x" * 9 * 2**20, "more than"),
    ],
)
async def test_a_page_that_cannot_be_read_is_named(
    web: Web, pages: Pages, kind: str, body: bytes, message: str
) -> None:
    web.add("/bad", body, kind)
    with pytest.raises(WebError, match=message):
        await pages.fetch(web.url("/bad"))


async def test_private_addresses_are_not_public_pages(web: Web) -> None:
    pages = Pages(read_media_hosts(("all",), "web_fetch_hosts"), timeout_s=60.0)
    with pytest.raises(WebError, match="web_fetch_hosts"):
        await pages.fetch(web.url("/otters"))
    with pytest.raises(WebError, match="public addresses"):
        await pages.fetch("http://127.0.0.1/")
    assert web.requests == []
    pages.close()
