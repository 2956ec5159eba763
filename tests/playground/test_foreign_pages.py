"""What pages of other sites may make a server do that has no key, in a real browser."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.api.engines import received_prompts
from tests.api.serving import RunningServer, running_server
from tests.http_servers import file_server

BODY = '{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}]}'
PAGE = """<!doctype html><link rel="icon" href="data:,">
<form method="post" enctype="text/plain"><input name='{"model": "parrot", "messages": [{"role": "user", "content": "Hi'
 value='"}]}'></form>"""
ATTACKS = {
    "form": "url => { const form = document.forms[0]; form.action = url; form.submit(); }",
    "text without CORS": "url => fetch(url, {method: 'POST', mode: 'no-cors', body: BODY}).catch(() => null)",
    "text": "url => fetch(url, {method: 'POST', body: BODY}).catch(() => null)",
    "no referrer": "url => fetch(url, {method: 'POST', mode: 'no-cors', referrerPolicy: 'no-referrer', body: BODY})"
    ".catch(() => null)",
    "beacon": "url => navigator.sendBeacon(url, BODY)",
    "bytes without a type": "url => fetch(url, {method: 'POST', mode: 'no-cors', body: new TextEncoder().encode(BODY)})"
    ".catch(() => null)",
    "a key without CORS": "url => fetch(url, {method: 'POST', mode: 'no-cors', body: BODY, "
    "headers: {authorization: 'Bearer sk', 'x-api-key': 'sk', 'content-type': 'application/json'}}).catch(() => null)",
}


@pytest.fixture(scope="module")
def attentive() -> Iterator[RunningServer]:
    with running_server(engine_factory="create_recording_parrot") as server:
        yield server


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """Another server of this machine; it is at all of its addresses and names."""
    directory = tmp_path_factory.mktemp("site")
    (directory / "index.html").write_text(PAGE)
    with file_server(directory) as port:
        yield directory, port


class _Statuses(logging.Handler):
    """Takes the status of each POST from the server's log: a browser does not tell it of requests without CORS."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SimpleQueue[int]()

    def emit(self, record: logging.LogRecord) -> None:
        match record.args:
            case ("POST", _, int(status), _):
                self.queue.put(status)


@contextmanager
def answers_to_posts() -> Iterator[SimpleQueue[int]]:
    handler, logger = _Statuses(), logging.getLogger("ouzel.api.http.request_log")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.queue
    logger.setLevel(level)
    logger.removeHandler(handler)


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    page.set_default_timeout(0)
    yield page
    page.close()


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("place", ["another site", "another port", "a file"])
def test_a_strange_page_makes_the_server_compute_nothing(
    page: Page, attentive: RunningServer, site: tuple[Path, int], place: str, attack: str
) -> None:
    directory, port = site
    places = {
        "another site": f"http://localhost:{port}/",
        "another port": f"http://127.0.0.1:{port}/",
        "a file": f"file://{directory}/index.html",
    }
    page.goto(places[place])
    received_prompts.clear()

    url = f"{attentive.url}/v1/chat/completions"
    with answers_to_posts() as statuses:
        page.evaluate(ATTACKS[attack].replace("BODY", f"'{BODY}'"), url)

        assert statuses.get() == 403
    assert received_prompts == []


def test_the_same_requests_are_answered_on_a_page_of_the_server(
    page: Page, attentive: RunningServer
) -> None:
    page.goto(f"{attentive.url}/")
    received_prompts.clear()

    with answers_to_posts() as statuses:
        page.evaluate(
            ATTACKS["text"].replace("BODY", f"'{BODY}'"), f"{attentive.url}/v1/chat/completions"
        )

        assert statuses.get() == 200
    assert len(received_prompts) == 1
