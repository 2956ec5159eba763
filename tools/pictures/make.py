"""Takes the pictures in docs/pictures/ again.

uv run python -m tools.pictures.make [NAME ...]
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from tests.playground.chromium import chromium_path, launch_chromium, running_playwright
from tests.playground.firefox.browser import firefox_path, running_firefox
from tests.serve.running import RunningServer, serving
from tools.pictures.features import (
    take_comparison,
    take_diagrams,
    take_formulas,
    take_models,
    take_right_to_left,
)
from tools.pictures.playground import take_chat, take_figures, take_phone
from tools.pictures.terminal import take_terminal

Taker = Callable[[Browser, RunningServer, Path], None]
_COLOURS = 128  # the number of colours in a file
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def take_report(browser: Browser, server: RunningServer, path: Path) -> None:
    """Takes the report of a sweep over the demo model, without its lines about the machine."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.html"
        options = ["--sweep", "concurrency:1,4,16", "--num-prompts", "64", "--report", str(report)]
        subprocess.run(
            [sys.executable, "-m", "ouzel", "bench", "--url", server.url, *options], check=True
        )
        page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
        page.goto(report.as_uri())
        end = page.get_by_role("heading", name="Circumstances").bounding_box()
        assert end is not None
        page.screenshot(
            path=path, full_page=True, clip={"x": 0, "y": 0, "width": 1100, "height": end["y"] - 10}
        )
        page.close()


TAKERS: dict[str, Taker] = {
    "playground.png": take_chat,
    "phone.png": take_phone,
    "formulas.png": take_formulas,
    "comparison.png": take_comparison,
    "models.png": take_models,
    "right-to-left.png": take_right_to_left,
    "figures.png": take_figures,
    "terminal.png": take_terminal,
    "report.png": take_report,
}
IN_FIREFOX: dict[str, Taker] = {"firefox.png": take_diagrams}


def shrink(path: Path) -> None:
    """Writes the picture with few colours, which flat drawings and texts do not miss."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MEDIANCUT)
    small.save(path, "PNG", optimize=True)


def main(names: list[str]) -> None:
    chromium, firefox = chromium_path(), firefox_path()
    if chromium is None or firefox is None:
        sys.exit("Chromium and Firefox must be installed here")
    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(cache_dir=Path(directory)) as server,
        running_playwright() as playwright,
        running_firefox(playwright, firefox, colours="dark") as other,
    ):
        browser = launch_chromium(playwright, chromium)
        for name in names or TAKERS | IN_FIREFOX:
            if name in TAKERS:
                TAKERS[name](browser, server, PICTURES / name)
            else:
                IN_FIREFOX[name](other, server, PICTURES / name)
            shrink(PICTURES / name)
            print(PICTURES / name)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
