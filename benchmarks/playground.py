"""Measures the size of the playground, and the time until a browser has painted it.

    uv run python -m benchmarks.playground [--rounds 9] [--conversations 2000]

Each round has a new browser context with an empty cache. The server serves the bundled demo model.
With `--conversations`, it measures instead how long a browser that keeps so many conversations of
20 messages takes to read and draw its list.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.playground.chromium import chromium_path, running_browser
from tests.serve.running import serving

_PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"
_READY = "performance.now()"
_LIST = "performance.getEntriesByName('list')[0].duration"
_FILL = """async (number) => {
  const { putAll } = await import("/playground/modules/storage/database.js");
  const { message } = await import("/playground/modules/chat/conversation.js");
  const day = 24 * 3600 * 1000;
  for (let start = 0; start < number; start += 100) {
    const entries = [];
    for (let index = start; index < Math.min(start + 100, number); index += 1) {
      const nodes = Array.from({ length: 20 }, (_, place) => ({
        id: place + 1, parent: place || null,
        message: message(place % 2 ? "assistant" : "user", {
          content: `Conversation ${index}, message ${place}. ` + "These are its words. ".repeat(25),
        }),
      }));
      const head = {
        title: `Conversation number ${index} of many`, updated: Date.now() - index * day / 10,
      };
      entries.push({
        record: {
          ...head, key: `local-${index}`, files: [], saved: nodes.map(({ id }) => id),
          isOnServer: false,
        },
        content: { ...head, nodes, activeLeaf: 20 },
        words: nodes.map((node) => node.message.content).join("\\n"),
      });
    }
    await putAll(entries);
  }
}"""


def visit(browser: Browser, url: str) -> tuple[float, float, int, int]:
    """Returns milliseconds to the first paint, milliseconds to readiness, bytes, and requests."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(url)
    page.wait_for_selector("body.ready")
    ready_ms: float = page.evaluate(_READY)
    while not (paints := page.evaluate(_PAINT)):
        page.wait_for_timeout(10)
    context.close()
    return paints[0], ready_ms, sum(sizes), len(sizes)


def measure_list(browser: Browser, url: str, *, rounds: int, conversations: int) -> None:
    """Prints the time until the list of conversations that the browser keeps is drawn."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("body.ready")
    page.evaluate(_FILL, conversations)
    times: list[float] = []
    for _ in range(rounds):
        page.reload()
        page.wait_for_selector("body.ready")
        times.append(page.evaluate(_LIST))
    shown = page.locator("#conversations .title").count()
    context.close()
    print(
        f"list of {conversations:,} conversations: median {statistics.median(times):.0f} ms, "
        f"{min(times):.0f} to {max(times):.0f}, {shown} rows"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--conversations", type=int, default=0)
    arguments = parser.parse_args()
    rounds: int = arguments.rounds
    conversations: int = arguments.conversations
    path = chromium_path()
    if path is None:
        sys.exit("no Chromium is installed here")
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(cache_dir=Path(directory)) as server,
        running_browser(path) as browser,
    ):
        if conversations > 0:
            measure_list(browser, server.root, rounds=rounds, conversations=conversations)
            return
        visit(browser, server.root)
        visits = [visit(browser, server.root) for _ in range(rounds)]
    paints, readies, sizes, counts = zip(*visits, strict=True)
    print(
        f"first contentful paint: median {statistics.median(paints):.0f} ms, "
        f"{min(paints):.0f} to {max(paints):.0f}"
    )
    print(f"ready to write:         median {statistics.median(readies):.0f} ms")
    print(
        f"weight:                 {max(sizes):,} bytes in {max(counts)} requests, "
        "nothing compressed"
    )


if __name__ == "__main__":
    main()
