"""Measures the size of the playground, and the time until a browser has painted it.

    uv run python -m benchmarks.playground [--rounds 9]

Each round has a new browser context with an empty cache. The server serves the bundled demo model.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    path = chromium_path()
    if path is None:
        sys.exit("no Chromium is installed here")
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(cache_dir=Path(directory)) as server,
        running_browser(path) as browser,
    ):
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
