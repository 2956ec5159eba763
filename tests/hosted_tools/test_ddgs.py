"""The package ddgs asks an engine on a loopback port, in a process with limits."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ouzel.hosted_tools.web_search.ddgs_search import Ddgs
from ouzel.hosted_tools.web_search.domains import read_domains
from ouzel.hosted_tools.web_search.records import Query, WebError
from tests.hosted_tools.engine_proxy import EngineProxy, running_engines

HIT = (
    '<div class="links_main result__body"><h2>{title}</h2>'
    '<a class="result__snippet" href="{url}">hold <b>hands</b></a></div>'
)


def write_page(*urls: str) -> bytes:
    hits = "".join(HIT.format(title=f"Otters of {url}", url=url) for url in urls)
    return f"<html><body>{hits}</body></html>".encode()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineProxy]:
    with running_engines(tmp_path, "html.duckduckgo.com") as engine:
        # the package's own variable, for operators behind a proxy
        monkeypatch.setenv("DDGS_PROXY", f"http://127.0.0.1:{engine.port}")
        yield engine


@pytest.fixture
async def ddgs(engine: EngineProxy) -> AsyncIterator[Ddgs]:
    ddgs = Ddgs(timeout_s=60.0, engines="duckduckgo", ca_file=engine.ca_file)
    yield ddgs
    ddgs.close()


async def test_hits_are_read(engine: EngineProxy, ddgs: Ddgs) -> None:
    engine.page = write_page("https://a.org/1", "javascript:alert(1)", "https://b.org/2")
    hits = await ddgs.search(Query("otters", 5))
    assert [hit.url for hit in hits] == ["https://a.org/1", "https://b.org/2"]
    assert hits[0].title == "Otters of https://a.org/1"
    assert hits[0].snippet == "hold hands"
    assert engine.requests[0].startswith(b"POST /html/ ")


async def test_domains_limit_the_hits(engine: EngineProxy, ddgs: Ddgs) -> None:
    engine.page = write_page("https://a.org/1", "https://b.org/2")
    hits = await ddgs.search(Query("otters", 5, domains=read_domains([], ["a.org"])))
    assert [hit.url for hit in hits] == ["https://b.org/2"]


async def test_no_hits_are_no_fault(engine: EngineProxy, ddgs: Ddgs) -> None:
    engine.page = write_page()
    assert await ddgs.search(Query("otters", 5)) == []


async def test_a_search_goes_on_behind_hostile_pages(engine: EngineProxy, ddgs: Ddgs) -> None:
    for page in (b"\x00\xff", b"<div class=body>" * 500_000, b""):
        engine.page = page
        try:
            assert await ddgs.search(Query("otters", 5)) == []
        except WebError as error:
            assert "cannot be asked" in str(error)
    engine.page = write_page("https://a.org/1")
    assert len(await ddgs.search(Query("otters", 5))) == 1


async def test_an_engine_that_cannot_be_reached_is_named(ddgs: Ddgs, tmp_path: Path) -> None:
    other = Ddgs(timeout_s=60.0, engines="duckduckgo")  # trusts public authorities only
    with pytest.raises(WebError, match="cannot be asked"):
        await other.search(Query("otters", 5))
    other.close()
