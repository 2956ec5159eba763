"""Checks pages with axe-core for accessibility, in each width and colour scheme of `LOOKS`."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

_LEFT = pytest.mark.release("pages of the playground in further pairs of width and colours")
# Every run has each width and each colour scheme once, a release has all pairs.
LOOKS = [
    (1280, "light"),
    (360, "dark"),
    pytest.param(1280, "dark", marks=_LEFT),
    pytest.param(360, "light", marks=_LEFT),
]
_RUN = """async () => {
  const { violations } = await axe.run({ resultTypes: ["violations"] });
  return violations.map(each => `${each.id}: ${each.nodes[0].html}`);
}"""


def violations(page: Page) -> list[str]:
    """Returns each broken rule with an element that breaks it."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(_RUN)
    return found
