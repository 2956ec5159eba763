"""Answers of ten thousand tokens come without a task of 0.1 s of CPU in the page."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from ouzel.parsers.registry import OutputFormat
from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import User, skip_unless_chromium

TASKS = ["disabled-by-default-devtools.timeline"]  # a trace of Chromium records each task
LONGEST_S = 0.1  # CPU seconds: on a busy machine each task takes longer by the clock
TOKENS = 10_000  # a byte is a token here
KINDS = {
    "paragraph": "word *and* more " * (TOKENS // 16),
    "code": "```python\n" + "value = compute(1, 'a')  # why\n" * (TOKENS // 30) + "```",
    "list": "- an item with `code`\n" * (TOKENS // 22),
    "table": "| a | b |\n|---|---|\n" + "| one | **two** |\n" * (TOKENS // 17),
    "formulas": (
        "So $x_{12}^2 + \\frac{a}{b}$ is\n\n$$\n\\sum_{k=0}^n \\binom{n}{k} = 2^n\n$$\n\n"
        "| a | b |\n|---|---|\n| $y$ | \\(z\\) |\n\n```js\nlet a = 1;\n```\n\n"
    )
    * (TOKENS // 122),
    "different formulas": "".join(
        f"\\[ x_{{{number}}} = \\sqrt{{\\frac{{{number}}}{{y}}}} \\]\n"
        for number in range(TOKENS // 40)
    ),
    "a table of formulas": "| a | b |\n|---|---|\n"
    + "".join(f"| $x^{{{number}}}$ | $\\alpha_{{{number}}}$ |\n" for number in range(TOKENS // 35)),
    "formulas in a paragraph": "".join(
        f"and $x_{{{number}}} < 1$ " for number in range(TOKENS // 20)
    ),
    "notes": "word[^1] " * (TOKENS // 12) + "\n\n[^1]: note\n" + "more[^1]\n\n" * (TOKENS // 50),
    "quotes": "> " * 20 + "deep\n" + "> text\n" * (TOKENS // 7),
    "everything": (
        "# Title\n\nText with [a link](https://example.org).\n\n"
        "- one\n- two\n\n```js\nlet a = 1;\n```\n\n"
    )
    * (TOKENS // 96),
}


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server that generates about one token each millisecond."""
    options = {"step_s": 0.0005, "max_model_len": 65536}
    store_url = f"sqlite:///{tmp_path_factory.mktemp('long') / 'store.sqlite3'}"
    with running_server(options, output_format=OutputFormat(), store_url=store_url) as server:
        yield server


@pytest.mark.release("long answers in the playground, watched for tasks over 100 ms of CPU")
@pytest.mark.parametrize("kind", KINDS)
def test_no_task_is_long(kind: str, streaming: RunningServer, browser: Browser, page: Page) -> None:
    skip_unless_chromium(page)
    user = User(page, streaming.url)
    user.open()
    user.send(KINDS[kind])
    # The trace begins here: typing ten thousand characters is a long task of the browser itself.
    browser.start_tracing(page=page, categories=TASKS)
    user.wait_for_answer()
    seconds = task_seconds(browser.stop_tracing())
    assert len(seconds) > 100
    assert [each for each in seconds if each > LONGEST_S] == []
    # The marks of Markdown are no text.
    shown = page.locator(".message.assistant .content")
    assert len(shown.inner_text()) > 0.4 * TOKENS or shown.locator("math").count() > TOKENS / 100


@pytest.mark.release("a long answer that is taken up, watched for tasks over 100 ms of CPU")
def test_no_task_is_long_when_an_answer_is_taken_up(
    streaming: RunningServer, browser: Browser, page: Page
) -> None:
    """The answer has ended, and all of its events come at once."""
    skip_unless_chromium(page)
    user = User(page, streaming.url)
    user.open()
    user.send(KINDS["everything"])
    while "resp_" not in page.evaluate("JSON.stringify(localStorage)"):
        page.wait_for_timeout(20)
    page.goto("about:blank")
    while streaming.engine.num_unfinished > 0:
        page.wait_for_timeout(20)
    browser.start_tracing(page=page, categories=TASKS)
    user.open()
    page.locator("#conversations .title").first.click()
    page.wait_for_selector(".message.assistant .figures")
    seconds = task_seconds(browser.stop_tracing())
    assert [each for each in seconds if each > LONGEST_S] == []
    assert len(page.locator(".message.assistant .content").inner_text()) > 0.4 * TOKENS


def task_seconds(trace: bytes) -> list[float]:
    """Returns the CPU time of each task of the main thread of each page; this thread handles input.

    On a busy virtual machine the CPU clock of a thread can jump: a task of 6 ms had 132 ms.
    A task cannot have more CPU time than time by the wall clock, so this returns the smaller one.
    """
    events = json.loads(trace)["traceEvents"]
    pages = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    return [
        min(event["dur"], event["tdur"]) / 1e6
        for event in events
        if event["name"] == "RunTask" and (event["pid"], event["tid"]) in pages and "tdur" in event
    ]
