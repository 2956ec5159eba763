"""Answers of ten thousand tokens come without a task that holds the page up for a tenth of a second."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from ouzel.parsers.registry import OutputFormat
from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import Person

WATCH = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((each) => each.duration)))
    .observe({ type: "longtask" });
}"""
TOKENS = 10_000  # a byte is a token here
KINDS = {
    "paragraph": "word *and* more " * (TOKENS // 16),
    "code": "```python\n" + "value = compute(1, 'a')  # why\n" * (TOKENS // 30) + "```",
    "list": "- an item with `code`\n" * (TOKENS // 22),
    "table": "| a | b |\n|---|---|\n" + "| one | **two** |\n" * (TOKENS // 17),
    "quotes": "> " * 20 + "deep\n" + "> text\n" * (TOKENS // 7),
    "everything": (
        "# Title\n\nText with [a link](https://example.org).\n\n- one\n- two\n\n```js\nlet a = 1;\n```\n\n"
    )
    * (TOKENS // 96),
}


@pytest.fixture(scope="module")
def streaming() -> Iterator[RunningServer]:
    """A token each millisecond or so."""
    options = {"step_s": 0.0005, "max_model_len": 65536}
    with running_server(options, output_format=OutputFormat()) as server:
        yield server


@pytest.mark.release("long answers in the playground, watched for tasks over 100 ms")
@pytest.mark.parametrize("kind", KINDS)
def test_no_task_is_long(kind: str, streaming: RunningServer, page: Page) -> None:
    person = Person(page, streaming.url)
    person.comes()
    person.writes(KINDS[kind])
    page.evaluate(
        WATCH
    )  # now: to type ten thousand characters at once is a long task of the browser's own
    person.waits()
    long_tasks: list[float] = page.evaluate("longTasks")
    assert [duration for duration in long_tasks if duration > 100] == []
    assert (
        len(person.page.locator(".message.assistant .content").inner_text()) > 0.4 * TOKENS
    )  # marks are no text
