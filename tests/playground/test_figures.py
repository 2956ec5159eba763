"""The page of live figures draws the values that a real server's /metrics reports."""

import json
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from ouzel.config import ServerConfig
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import LOOKS, violations
from tests.serve.running import serving

pytestmark = pytest.mark.release("the playground: live figures")

PATH = "/playground/figures.html"
SAYS_HELLO = {"model": "parrot", "messages": [{"role": "user", "content": "hello"}]}
FAILS = {"model": "parrot", "messages": [{"role": "user", "content": "a|fail|b"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """Starts a server that gets requests from these tests only."""
    with running_server() as server:
        yield server


@pytest.fixture
def figures(page: Page, server: RunningServer) -> Page:
    page.goto(server.url + PATH)
    page.wait_for_selector("body.ready")
    return page


def tile(page: Page, name: str) -> Locator:
    return page.locator(f"#tiles .tile:has(dt:text-is('{name}')) dd")


def chart(page: Page, title: str) -> Locator:
    return page.locator(f".chart:has(h2:text-is('{title}'))")


def current(page: Page, title: str, series: str) -> Locator:
    """Returns the legend's element with the current value of a series."""
    return chart(page, title).locator(f"li:has(.name:text-is('{series}')) .current")


def ask(server: RunningServer, body: Mapping[str, object] = SAYS_HELLO, *, times: int = 1) -> None:
    with server.client() as http:
        for _ in range(times):
            http.post("/v1/chat/completions", json=body)


def wait_for_new_reading(page: Page) -> None:
    """Waits until the page has shown a reading of /metrics that began after this call.

    A page that becomes visible reads /metrics at once.
    """
    for _ in range(2):  # one reading may already be under way
        with page.expect_response("**/metrics"):
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.evaluate("new Promise(requestAnimationFrame)")


def test_requests_of_all_models_count_together(page: Page) -> None:
    with running_server(further=(ServerSetup(names=("other",)),)) as server:
        page.goto(server.url + PATH)
        page.wait_for_selector("body.ready")
        ask(server, times=2)
        ask(server, SAYS_HELLO | {"model": "other"})
        wait_for_new_reading(page)
        expect(current(page, "Outcomes", "Completed")).to_have_text("3")


def totals(page: Page) -> list[list[str]]:
    """Returns the cells of the table of counts since the start, without its times."""
    rows = page.locator(".totals tbody tr").all()
    return [row.locator("th, td").all_inner_texts()[:5] for row in rows]


def test_counts_since_the_start_stand_in_a_row_for_each_model(page: Page) -> None:
    """The figures since the start include requests before the page was opened."""
    with running_server(further=(ServerSetup(names=("other",)),)) as server:
        ask(server, times=2)
        ask(server, SAYS_HELLO | {"model": "other"})
        page.goto(server.url + PATH)
        page.wait_for_selector("body.ready")
        expect(page.locator(".totals .note")).to_contain_text("The server started at ")
        rows = {row[0]: row[1:] for row in totals(page)}
        assert list(rows) == ["All models", "org/parrot", "other"]
        assert [rows[name][0] for name in rows] == ["3", "2", "1"]
        generated = [int(rows[name][3]) for name in rows]
        assert generated[0] == generated[1] + generated[2] and generated[2] >= len("hello")
        first = page.locator(".totals tbody tr").first.locator("td").all_inner_texts()
        assert all(re.fullmatch(r"[\d.]+ m?s|0", text) for text in first[4:])
        ask(server, SAYS_HELLO | {"model": "other"})
        wait_for_new_reading(page)
        assert [row[1] for row in totals(page)] == ["4", "2", "2"]


def test_percentiles_are_read_from_buckets(figures: Page) -> None:
    script = """async ([counts, share]) => {
      const { quantileOf } = await import("/playground/modules/figures/quantile.js");
      const bounds = [1, 2, 4, Infinity];
      return quantileOf(counts.map((count, index) => ({ count, bound: bounds[index] })), share);
    }"""
    assert figures.evaluate(script, [[10, 10, 10, 10], 0.5]) == 0.5
    assert figures.evaluate(script, [[0, 10, 20, 20], 0.9]) == 3.6
    assert figures.evaluate(script, [[0, 0, 0, 5], 0.99]) == 4  # above the last bound
    assert figures.evaluate(script, [[0, 0, 0, 0], 0.5]) is None
    assert figures.evaluate(script, [[], 0.5]) is None


def test_the_figures_of_requests_are_drawn(figures: Page, server: RunningServer) -> None:
    before = int(tile(figures, "Tokens since start").inner_text())
    ask(server, times=3)
    ask(server, FAILS)
    wait_for_new_reading(figures)
    assert int(tile(figures, "Tokens since start").inner_text()) >= before + 3 * len("hello")
    expect(tile(figures, "Running")).to_have_text("0")
    expect(tile(figures, "First token, p50")).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    assert int(current(figures, "Outcomes", "Completed").inner_text()) >= 3
    assert int(current(figures, "Outcomes", "Failed").inner_text()) >= 1
    expect(current(figures, "Tokens", "Generated")).to_have_text(re.compile(r"^[\d.]+/s$"))
    expect(current(figures, "Speculation", "Accepted")).to_have_text("–")
    drawing = chart(figures, "Time of whole requests").locator("svg")
    assert re.search(r"p50 [\d.]+ m?s, p95 [\d.]+ m?s", drawing.get_attribute("aria-label") or "")
    assert "L" in (chart(figures, "Requests").locator("path.series-1").get_attribute("d") or "")


def test_a_running_request_is_shown(page: Page, tmp_path: Path) -> None:
    """The server runs Ouzel's own engine with the bundled model."""
    body = json.dumps(
        {
            "model": "ouzel-demo",
            "prompt": "on and on",
            "max_tokens": 4000,
            "ignore_eos": True,
            "n": 16,
        }
    )
    with serving(cache_dir=tmp_path) as server:
        page.goto(server.root + PATH)
        page.wait_for_selector("body.ready")
        address = urlsplit(server.root)
        with socket.create_connection((address.hostname, address.port)) as connection:
            head = (
                f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            connection.sendall(f"{head}{body}".encode())
            expect(tile(page, "Running")).to_have_text("16")
            expect(tile(page, "KV cache")).to_have_text(re.compile("[1-9]"))
        expect(tile(page, "Running")).to_have_text("0")
        expect(current(page, "Outcomes", "Ended by the client")).to_have_text("16")


def test_keys_and_the_pointer_choose_a_moment_of_the_past(
    figures: Page, server: RunningServer
) -> None:
    ask(server)
    wait_for_new_reading(figures)
    requests = chart(figures, "Requests")
    drawing = requests.locator("svg")
    drawing.focus()
    expect(requests.locator(".moment")).to_have_text("")
    figures.keyboard.press("Home")
    expect(requests.locator(".moment")).to_have_text(re.compile(r"\d:\d\d"))
    first = requests.locator("line.looked-at").get_attribute("x1")
    figures.keyboard.press("End")
    assert requests.locator("line.looked-at").get_attribute("x1") != first
    figures.keyboard.press("Escape")
    expect(requests.locator(".moment")).to_have_text("")
    drawing.hover()
    expect(requests.locator("circle.dot")).to_have_count(2)


def test_a_chart_is_a_table_too(figures: Page, server: RunningServer) -> None:
    outcomes = chart(figures, "Outcomes")
    outcomes.locator("summary").press("Enter")
    expect(outcomes.locator("thead th")).to_have_text(
        ["Time", "Completed", "Failed", "Ended by the client", "Refused"]
    )
    assert outcomes.locator("tbody tr").count() >= 1


def test_a_server_that_is_gone_is_named_and_found_again(figures: Page) -> None:
    figures.route("**/metrics", lambda route: route.abort())
    expect(figures.locator("#state")).to_contain_text("The server is out of reach since")
    figures.unroute("**/metrics")
    expect(figures.locator("#state")).to_contain_text("The server is back since")


def test_a_restarted_server_has_no_negative_rates(figures: Page, server: RunningServer) -> None:
    """A counter that is smaller than before has started again at zero."""
    ask(server, times=2)
    wait_for_new_reading(figures)
    with running_server() as other:
        ask(other)

        def answer_from_other(route: Route) -> None:
            with other.client() as http:
                route.fulfill(status=200, content_type="text/plain", body=http.get("/metrics").text)

        figures.route("**/metrics", answer_from_other)
        wait_for_new_reading(figures)
        expect(tile(figures, "Tokens since start")).to_have_text(re.compile("^[56]$"))
        expect(chart(figures, "Requests").locator("line.restart")).to_have_count(1)
        assert "-" not in current(figures, "Tokens", "Generated").inner_text()
        assert int(current(figures, "Outcomes", "Completed").inner_text()) >= 3
        figures.unroute("**/metrics")


def test_a_key_is_asked_for(page: Page) -> None:
    with running_server(config=ServerConfig(api_key=("sk-right",))) as guarded:
        page.goto(guarded.url + PATH)
        expect(page.locator("#state")).to_have_text("The server needs an API key for its figures.")
        page.keyboard.type("sk-wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#key-trouble")).to_contain_text("not one of this server's")
        page.keyboard.type("sk-right")
        page.keyboard.press("Enter")
        page.wait_for_selector("body.ready")
        expect(page.locator("#key-form")).to_be_hidden()
        expect(page.locator("#figures")).to_be_focused()


def test_figures_that_a_proxy_hides_are_said_to_be_hidden(figures: Page) -> None:
    figures.route("**/metrics", lambda route: route.fulfill(status=403))
    expect(figures.locator("#state")).to_contain_text("answers /metrics with 403. A proxy")
    figures.unroute("**/metrics")
    expect(figures.locator("#state")).to_contain_text("Renewed every 2 seconds")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_page_obeys_the_rules_of_accessibility(
    figures: Page, width: int, scheme: Literal["light", "dark"]
) -> None:
    figures.set_viewport_size({"width": width, "height": 800})
    figures.emulate_media(color_scheme=scheme)
    for summary in figures.locator("summary").all():
        summary.click()
    assert violations(figures) == []
    assert figures.evaluate("document.documentElement.scrollWidth <= innerWidth")
