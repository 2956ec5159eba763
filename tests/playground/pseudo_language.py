"""Serves the page in a language in which each text stands in marks, and finds text without marks.

Text without marks is data of a person, a model or the server, or it is missing in `texts/en.json`.
"""

import json
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, Route

from ouzel.playground import DIRECTORY, read_texts
from tests.playground.accessibility import PAGES
from tests.playground.chromium import User

_PLACE = re.compile(r"\{\{([\w.]+)\}\}")
_PAGES = {"/": "index.html", "/playground/figures.html": "figures.html"}
# Elements with data of people, models and servers
DATA = (
    "bdi",
    ".plain",
    ".markdown :is(p, h3, h4, h5, h6, li, td, th, math, code, a, tspan)",
    ".code-language",
    ".model-name",
    ":is(.moment, .table-scroll th[scope=row])",  # times of the day
    ":is(.tokens, .token-card) :is(.token, code, strong)",
    "#conversations .title",
    "#title",
    "#model option",
    "#language option",
    ":is(pre, code)",
    "kbd",
    "textarea",
    # names and descriptions of fields come from the server's API
    "label:has(.number) :is(.field-label, small)",
    "label:has(#set-stop) .field-label",
)
_EXAMPLES = "#set-schema, #set-tools, #pull-name, #mcp-url"  # their placeholders are code
# Words that are the same in all languages: names and units
WORDS = ("Ouzel", "curl", "Python", "JavaScript", "p50", "p95", "p99")
_FIND = """([data, words, examples]) => {
  const letters = /\\p{L}/u;
  const found = [];
  const withoutWords = (text) => words.reduce((rest, word) => rest.replaceAll(word, ""), text);
  let depth = 0; // a text that holds nodes begins in one node and ends in another
  const outside = (text) => {
    let rest = "";
    for (const character of text) {
      if (character === "⟦") depth += 1;
      else if (character === "⟧") depth -= 1;
      else if (depth === 0) rest += character;
    }
    return rest;
  };
  const take = (where, text) => {
    const rest = withoutWords(outside(text)).trim();
    if (letters.test(rest)) found.push(`${where}: ${rest}`);
  };
  const isShown = (node) => node.checkVisibility({ visibilityProperty: true });
  const nameOf = (node) => `${node.localName}#${node.id}.${node.classList}`;
  const takeAttributes = (node) => {
    const isData = node.matches(data);
    for (const name of ["aria-label", "title", "placeholder", "alt", "aria-valuetext"]) {
      if (!node.hasAttribute(name) || (isData && name === "title")) continue;
      if (name === "placeholder" && node.matches(examples)) continue;
      take(`${nameOf(node)} ${name}`, node.getAttribute(name));
    }
    for (const pseudo of ["::before", "::after"]) {
      const { content } = getComputedStyle(node, pseudo);
      if (content.startsWith('"')) take(`${nameOf(node)} ${pseudo}`, content);
    }
  };
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const parent = node.parentElement;
      if (!parent.closest(data) || depth > 0) take(nameOf(parent), node.data);
    }
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    if (node.localName !== "option" && !isShown(node)) return;
    takeAttributes(node);
    for (const child of node.childNodes) walk(child);
  };
  walk(document.body);
  if (depth !== 0) found.push(`${depth} marks are not closed`);
  return found;
}"""


def mark(text: str) -> str:
    return f"⟦{text}⟧"


def _send(route: Route, body: str) -> None:
    """Sends another body with the headers of the server, except for the length."""
    headers = route.fetch().headers
    kept = {name: value for name, value in headers.items() if not name.startswith("content-length")}
    route.fulfill(headers=kept, body=body)


class PseudoUser(User):
    """Uses a page whose texts are in marks. Buttons have their English names."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        page.route("**/playground/texts/en.json", self._send_texts)
        page.route(PAGES, self._send_page)

    def find_button(self, label: str, inside: Locator | None = None) -> Locator:
        return super().find_button(mark(label), inside)

    def find_texts_without_marks(self, data: Sequence[str] = ()) -> list[str]:
        """Returns each text that a person can see or hear and that has no marks."""
        found: list[str] = self.page.evaluate(_FIND, [", ".join([*DATA, *data]), WORDS, _EXAMPLES])
        return found

    @staticmethod
    def _send_texts(route: Route) -> None:
        marked = {
            key: mark(text)
            if isinstance(text, str)
            else {category: mark(form) for category, form in text.items()}
            for key, text in read_texts("en").items()
        }
        _send(route, json.dumps(marked))

    @staticmethod
    def _send_page(route: Route) -> None:
        if not route.request.is_navigation_request():
            route.continue_()  # the page asks for facts about the server at the same address
            return
        texts = {**read_texts("en"), "language": "en", "direction": "ltr"}

        def put_in(place: re.Match[str]) -> str:
            text = str(texts[place[1]])
            return text if place[1] in ("language", "direction") else mark(text)

        page = (DIRECTORY / _PAGES[urlsplit(route.request.url).path]).read_text()
        _send(route, _PLACE.sub(put_in, page))


class Check:
    """Collects the texts without marks of each state; `data` are further elements with data."""

    def __init__(self, user: PseudoUser, *data: str) -> None:
        self._user = user
        self._data = data
        self.found: dict[str, list[str]] = {}

    def __call__(self, state: str) -> None:
        texts = self._user.find_texts_without_marks(self._data)
        if texts:
            self.found[state] = texts
