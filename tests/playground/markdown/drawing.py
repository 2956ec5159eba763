"""Markdown drawn in a browser, as the modules of the playground draw it."""

from collections.abc import Sequence
from typing import Any  # JSON

from playwright.sync_api import Page

_LINK = ' target="_blank" rel="noopener noreferrer nofollow"'
_RENDER = """async text => {
    const { renderMarkdown } = await import("/playground/modules/markdown/view.js");
    const box = document.createElement("div");
    document.querySelector("main").replaceChildren(box);
    renderMarkdown(text, box);
    return box.innerHTML;
}"""
_STREAM = """async pieces => {
    const { MarkdownView } = await import("/playground/modules/markdown/view.js");
    const box = document.createElement("div");
    document.querySelector("main").replaceChildren(box);
    const view = new MarkdownView(box);
    const shown = [];
    for (const piece of pieces) {
        view.append(piece);
        view.draw();
        shown.push(box.innerHTML);
    }
    return shown;
}"""
# For each text the ways it is cut that end in other elements than the whole text, or in more text nodes.
_DIFFERENCES = """async cases => {
    const { MarkdownView, renderMarkdown } = await import("/playground/modules/markdown/view.js");
    const numNodes = root => {
        const walker = document.createTreeWalker(root);
        let number = 0;
        while (walker.nextNode()) number += 1;
        return number;
    };
    const differing = [];
    for (const [text, ways] of cases) {
        const whole = document.createElement("div");
        renderMarkdown(text, whole);
        for (const places of ways) {
            const box = document.createElement("div");
            const view = new MarkdownView(box);
            let start = 0;
            for (const end of [...places, text.length]) {
                view.append(text.slice(start, end));
                view.draw();
                start = end;
            }
            view.finish();
            const isSame = box.innerHTML === whole.innerHTML && numNodes(box) === numNodes(whole) && view.text === text;
            if (!isSame) differing.push([text, places, whole.innerHTML, box.innerHTML]);
        }
    }
    return differing;
}"""


class Drawing:
    """Draws on an empty page that is open."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def of(self, text: str) -> str:
        """Returns a text's elements, without what all links and items have."""
        return self._without_repetition(self.page.evaluate(_RENDER, text))

    def stages(self, pieces: Sequence[str]) -> list[str]:
        """Returns the elements that are seen after each piece of a text that goes on."""
        return [
            self._without_repetition(shown) for shown in self.page.evaluate(_STREAM, list(pieces))
        ]

    def differences(self, cases: Sequence[tuple[str, Sequence[Sequence[int]]]]) -> list[Any]:
        """Takes texts, and for each the ways to cut it: rows of places, in UTF-16 units."""
        found: list[Any] = self.page.evaluate(
            _DIFFERENCES, [[text, list(ways)] for text, ways in cases]
        )
        return found

    @staticmethod
    def _without_repetition(html: str) -> str:
        return (
            html.replace(_LINK, "")
            .replace('<div class="item">', "")
            .replace("</div></li>", "</li>")
        )
