"""Pages of each type and charset become text; robots.txt is fetched as RFC 9309 says."""

from collections.abc import Iterator

import pytest

import ouzel
from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.web_search.found_text import find_in_text
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.records import WebError
from tests.hosted_tools.web_servers import Web, running_web

OTTERS = "Выдры держатся за лапы, когда спят. " * 10
CYRILLIC = f"<html><head>{{}}<title>Выдры</title></head><body><p>{OTTERS}</p></body></html>"


@pytest.fixture
def web() -> Iterator[Web]:
    with running_web() as web:
        yield web


@pytest.fixture
def pages(web: Web) -> Iterator[Pages]:
    pages = Pages(read_media_hosts((f"127.0.0.1:{web.port}",)), timeout_s=60.0)
    yield pages
    pages.close()


@pytest.mark.parametrize(
    ("kind", "head", "charset"),
    [
        ("text/html; charset=windows-1251", "", "cp1251"),
        ("text/html; Charset='KOI8-R'", "", "koi8-r"),
        ("text/html", "<meta charset=windows-1251>", "cp1251"),
        ("text/html", "<meta http-equiv=content-type content='x; charset=koi8-r'>", "koi8-r"),
        ("text/html; charset=koi8-r", "<meta charset=windows-1251>", "koi8-r"),
        ("text/html; charset=latin1", "", "utf-8-sig"),
        ("text/html; charset=nonsense", "", "utf-8"),
        ("text/html", "", "utf-16"),
    ],
)
async def test_html_is_decoded_by_its_charset(
    web: Web, pages: Pages, kind: str, head: str, charset: str
) -> None:
    web.add("/a", CYRILLIC.format(head).encode(charset), kind)
    page = await pages.fetch(web.url("/a"))
    assert page.title == "Выдры"
    assert OTTERS[:30] in page.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", "a,b"),
        ("text/csv", "a,b"),
        ("application/json; charset=utf-8", '{"a": 1}'),
        ("application/ld+json", '{"a": 1}'),
        ("application/rss+xml", "<a>b</a>"),
    ],
)
async def test_texts_are_read_as_they_are(web: Web, pages: Pages, kind: str, body: str) -> None:
    web.add("/a", body, kind)
    assert (await pages.fetch(web.url("/a"))).text == body


async def test_tables_lists_and_code_stay(web: Web, pages: Pages) -> None:
    web.add(
        "/a",
        "<html><head><title>T</title></head><body><main><h1>Head</h1><table><tr><th>Plan</th>"
        "<th>Price</th></tr><tr><td>Small</td><td>9 EUR</td></tr></table><ul><li>one</li>"
        "<li>two</li></ul><pre><code>print(1)\nprint(2)</code></pre></main></body></html>",
    )
    text = (await pages.fetch(web.url("/a"))).text
    for part in ("Head", "Small", "9 EUR", "- one", "print(1)\nprint(2)"):
        assert part in text


async def test_a_pdf_is_read(web: Web, pages: Pages) -> None:
    web.add("/a.pdf", make_pdf("Otters hold hands"), "application/pdf")
    page = await pages.fetch(web.url("/a.pdf"))
    assert page.text == "Otters hold hands"
    assert page.title == web.url("/a.pdf")


def make_pdf(text: str) -> bytes:
    """Makes a PDF of one page by hand; PDFium repairs the missing table of offsets."""
    content = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET"
    return (
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        "/Resources<</Font<</F1 5 0 R>>>>>>endobj\n"
        f"4 0 obj<</Length {len(content)}>>stream\n{content}\nendstream endobj\n"
        "5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
        "trailer<</Root 1 0 R>>\n%%EOF"
    ).encode()


async def test_the_agent_names_itself(web: Web, pages: Pages) -> None:
    await pages.fetch(web.url("/otters"))
    for _, headers, _ in web.requests:
        assert headers["User-Agent"].startswith(f"Ouzel/{ouzel.__version__} ")
        assert headers["Accept-Encoding"] == "identity"


async def test_a_site_that_cannot_say_is_not_fetched(web: Web, pages: Pages) -> None:
    web.add("/robots.txt", "", "text/plain", status=503)
    with pytest.raises(WebError, match="503"):
        await pages.fetch(web.url("/otters"))
    web.add("/robots.txt", "", "text/plain", status=403)  # means: there is no file
    assert (await pages.fetch(web.url("/otters"))).title == "Otters"


async def test_robots_are_read_behind_redirects(web: Web, pages: Pages) -> None:
    web.redirect("/robots.txt", "/rules")
    web.add("/rules", "User-agent: ouzel\nDisallow: /*ott", "text/plain")
    with pytest.raises(WebError, match=r"robots\.txt"):
        await pages.fetch(web.url("/otters"))


@pytest.mark.parametrize(
    "target", ["/robots.txt", "http://127.0.0.1:1/", "http://[::1", "file:///"]
)
async def test_robots_in_a_wrong_place_do_not_count(web: Web, pages: Pages, target: str) -> None:
    web.redirect("/robots.txt", target)
    assert (await pages.fetch(web.url("/otters"))).title == "Otters"


async def test_robots_of_the_target_of_a_redirect_count(web: Web, pages: Pages) -> None:
    web.add("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain")
    web.add("/private", "secret", "text/plain")
    web.redirect("/public", "/private")
    with pytest.raises(WebError, match=r"robots\.txt"):
        await pages.fetch(web.url("/public"))


def test_places_are_found_across_lines_and_cases() -> None:
    text = f"{'x ' * 400}Otters hold\n hands{' y' * 400}"
    found = find_in_text(text, "otters  HOLD hands")
    assert found.startswith("Places with this text: 1") and "Otters hold\n hands" in found
    assert len(found) < 700


def test_a_pattern_is_plain_text() -> None:
    assert find_in_text("a.b", "a.b").startswith("Places with this text: 1")
    assert "does not contain" in find_in_text("axb", "a.b")
    assert "does not contain" in find_in_text("axb", "  ")


def test_near_places_are_shown_once() -> None:
    found = find_in_text("otter " * 50, "otter")
    assert found.startswith("Places with this text: 50") and found.count("…") == 0
    assert len(found) < 400


def test_very_many_places_are_not_counted() -> None:
    found = find_in_text("a" * 2**20, "a")
    assert found.startswith("Places with this text: at least 1000") and len(found) < 8000
