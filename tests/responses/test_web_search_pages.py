"""One response fetches a page once, however often the model reads it."""

import itertools
import json
from collections.abc import Iterator

import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.providers import make_provider
from ouzel.responses.hosted.kinds import ModelCall, OpeningContext
from ouzel.responses.hosted.web_search import WebSearchCall
from ouzel.responses.hosted.web_search_kind import WebSearch, WebSearchKind
from ouzel.wire.offered_tools import ClientName
from tests.hosted_tools.web_servers import Web, running_web


@pytest.fixture
def web() -> Iterator[Web]:
    with running_web() as web:
        for number in range(6):
            web.add(f"/{number}", f"page {number}", "text/plain")
        yield web


async def open_search(web: Web) -> WebSearch:
    pages = Pages(read_media_hosts((f"127.0.0.1:{web.port}",)), timeout_s=60.0)
    kind = WebSearchKind(make_provider("searxng", web.url(""), "", timeout_s=60.0), pages)
    context = OpeningContext(key_id=None, include=frozenset(), items=[])
    return await kind.open({"type": "web_search"}, "tools[0]", context)


async def call(search: WebSearch, name: str, **arguments: str) -> str:
    item = search.begin_call(ModelCall(ClientName(name), json.dumps(arguments)))
    ended = (await search.run(item, itertools.count(1))).item
    assert isinstance(ended, WebSearchCall) and ended.status == "completed"
    assert isinstance(ended.output, str)
    return ended.output


def list_fetched(web: Web) -> list[str]:
    return [path for path, _, _ in web.requests if path != "/robots.txt"]


async def test_a_page_is_fetched_once(web: Web) -> None:
    search = await open_search(web)
    await call(search, "open_page", url=web.url("/1"))
    found = await call(search, "find_in_page", url=web.url("/1"), pattern="PAGE 1")
    assert "Places with this text: 1" in found
    assert list_fetched(web) == ["/1"]
    other = await open_search(web)  # this is another response
    await call(other, "open_page", url=web.url("/1"))
    assert list_fetched(web) == ["/1", "/1"]


async def test_few_pages_stay_in_memory(web: Web) -> None:
    search = await open_search(web)
    for number in (0, 1, 2, 3, 0, 4, 0, 1):
        await call(search, "open_page", url=web.url(f"/{number}"))
    assert list_fetched(web) == ["/0", "/1", "/2", "/3", "/4", "/1"]
