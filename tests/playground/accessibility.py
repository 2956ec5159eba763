"""Checks pages with axe-core for accessibility, in each width and colour scheme of `LOOKS`.

640 is the width of a window of 1280 pixels whose contents are enlarged to 200 %.
"""

import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, Route

_LEFT = pytest.mark.release("pages of the playground in further widths, colours and directions")
_MIRRORED = (pytest.mark.right_to_left, _LEFT)
# Every run has the narrow dark page; single states of the wide light page are in other tests.
LOOKS = [
    (360, "dark"),
    pytest.param(1280, "light", marks=_LEFT),
    pytest.param(1280, "dark", marks=_LEFT),
    pytest.param(360, "light", marks=_LEFT),
    pytest.param(640, "light", marks=_LEFT),
    pytest.param(640, "dark", marks=_LEFT),
    pytest.param(1280, "light", marks=_MIRRORED, id="1280-light-mirrored"),
    pytest.param(640, "light", marks=_MIRRORED, id="640-light-mirrored"),
    pytest.param(360, "dark", marks=_MIRRORED, id="360-dark-mirrored"),
    pytest.param(1280, "dark", marks=(pytest.mark.still, _LEFT), id="1280-dark-still"),
]
PAGES = re.compile(r"^https?://[^/]+/(playground/figures\.html)?(\?.*)?$")  # the addresses of pages
_RUN = """async () => {
  const { violations } = await axe.run({ resultTypes: ["violations"], iframes: false });
  return violations.map(each => `${each.id}: ${each.nodes[0].html}`);
}"""

_MEASURE = """() => {
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth)
    faults.push("the page is wider than its window");
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (isStill && document.getAnimations().length > 0) faults.push("something moves");
  return faults;
}"""


def mirror(page: Page) -> None:
    """Makes the page run from right to left, with its English texts."""

    def turn(route: Route) -> None:
        response = route.fetch()
        body = response.text().replace(' dir="ltr"', ' dir="rtl"', 1)
        route.fulfill(response=response, body=body)

    page.route(PAGES, turn)


class Violations:
    """Collects the faults of each state: broken rules, too much width, unwanted motion."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.found: dict[str, list[str]] = {}

    def __call__(self, state: str) -> None:
        faults = violations(self._page) + self._page.evaluate(_MEASURE)
        if faults:
            self.found[state] = faults


def violations(page: Page) -> list[str]:
    """Returns each broken rule with an element that breaks it."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(_RUN)
    return found
