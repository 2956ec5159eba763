"""A page of another site cannot make a server without a key compute: tests in a real browser."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from playwright.sync_api import Browser, Page

from tests.api.engines import received_prompts
from tests.api.serving import RunningServer, running_server
from tests.http_servers import file_server
from tests.playground.chromium import HANG_MS

BODY = '{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}]}'
PAGE = """<!doctype html><link rel="icon" href="data:,">
<form method="post" enctype="text/plain">
<input name='{"model": "parrot", "messages": [{"role": "user", "content": "Hi' value='"}]}'>
</form>"""
_NO_CORS = "method: 'POST', mode: 'no-cors'"
_KEYS = "authorization: 'Bearer sk', 'x-api-key': 'sk', 'content-type': 'application/json'"


def _fetch_script(init: str) -> str:
    return f"url => fetch(url, {{{init}}}).catch(() => null)"


ATTACKS = {
    "form": "url => { const form = document.forms[0]; form.action = url; form.submit(); }",
    "text without CORS": _fetch_script(f"{_NO_CORS}, body: BODY"),
    "text": _fetch_script("method: 'POST', body: BODY"),
    "no referrer": _fetch_script(f"{_NO_CORS}, referrerPolicy: 'no-referrer', body: BODY"),
    "beacon": "url => navigator.sendBeacon(url, BODY)",
    "bytes without a type": _fetch_script(f"{_NO_CORS}, body: new TextEncoder().encode(BODY)"),
    "a key without CORS": _fetch_script(f"{_NO_CORS}, body: BODY, headers: {{{_KEYS}}}"),
}


@pytest.fixture(scope="module")
def recording_server() -> Iterator[RunningServer]:
    with running_server(engine_factory="create_recording_parrot") as server:
        yield server


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """Serves a page from another port of this machine, at all its addresses and names."""
    directory = tmp_path_factory.mktemp("site")
    (directory / "index.html").write_text(PAGE)
    with file_server(directory) as port:
        yield directory, port


class _Statuses(logging.Handler):
    """Takes the status of each POST from the server's log.

    A browser does not tell the status of requests without CORS.
    """

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


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(HANG_MS)
    yield page
    context.close()


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("place", ["another site", "another port", "a file"])
def test_a_page_of_another_site_cannot_make_the_server_compute(
    page: Page, recording_server: RunningServer, site: tuple[Path, int], place: str, attack: str
) -> None:
    directory, port = site
    places = {
        "another site": f"http://localhost:{port}/",
        "another port": f"http://127.0.0.1:{port}/",
        "a file": f"file://{directory}/index.html",
    }
    page.goto(places[place])
    received_prompts.clear()

    url = f"{recording_server.url}/v1/chat/completions"
    with answers_to_posts() as statuses:
        page.evaluate(ATTACKS[attack].replace("BODY", f"'{BODY}'"), url)

        assert statuses.get() == 403
    assert received_prompts == []


def test_the_same_requests_are_answered_on_a_page_of_the_server(
    page: Page, recording_server: RunningServer
) -> None:
    page.goto(f"{recording_server.url}/")
    received_prompts.clear()

    with answers_to_posts() as statuses:
        page.evaluate(
            ATTACKS["text"].replace("BODY", f"'{BODY}'"),
            f"{recording_server.url}/v1/chat/completions",
        )

        assert statuses.get() == 200
    assert len(received_prompts) == 1
