"""Draws Markdown in a browser with the modules of the playground."""

from collections.abc import Sequence
from typing import Any  # JSON

from playwright.sync_api import Locator, Page, expect

_LINK = ' target="_blank" rel="noopener noreferrer nofollow"'
_OWN_WAY = ' dir="auto"'  # each text runs the way of its own language
_RENDER = """async text => {
    const { whenDrawn } = await import("/playground/modules/markdown/formulas/formula_view.js");
    const { renderMarkdown } = await import("/playground/modules/markdown/view.js");
    const box = document.createElement("div");
    document.querySelector("main").replaceChildren(box);
    renderMarkdown(text, box);
    await whenDrawn();
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
# Chromium leaves tabs out where it pastes by itself.
_ADD_FIELD = """() => {
    const field = Object.assign(document.createElement("textarea"), { id: "pasted" });
    field.addEventListener("paste", event => {
        event.preventDefault();
        field.value = event.clipboardData.getData("text/plain");
    });
    document.body.append(field);
}"""
# Returns each text and its cuts for which the drawn elements or the number of text nodes differ
# between the cut text and the whole text.
_DIFFERENCES = """async cases => {
    const { whenDrawn } = await import("/playground/modules/markdown/formulas/formula_view.js");
    const { MarkdownView, renderMarkdown } = await import("/playground/modules/markdown/view.js");
    const withoutIds = html => html.replaceAll(/note-\\d+-/g, "note-");  // each text has its own
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
            await whenDrawn();
            const isSame = withoutIds(box.innerHTML) === withoutIds(whole.innerHTML)
                && numNodes(box) === numNodes(whole) && view.text === text;
            if (!isSame) differing.push([text, places, whole.innerHTML, box.innerHTML]);
        }
    }
    return differing;
}"""


class Drawing:
    """Draws Markdown on an open, empty page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def draw(self, text: str) -> str:
        """Returns the HTML of a text, without the parts that all links and items share."""
        return self._without_repetition(self.page.evaluate(_RENDER, text))

    def stages(self, pieces: Sequence[str]) -> list[str]:
        """Returns the HTML after each piece of a text that is streamed."""
        return [
            self._without_repetition(shown) for shown in self.page.evaluate(_STREAM, list(pieces))
        ]

    def differences(self, cases: Sequence[tuple[str, Sequence[Sequence[int]]]]) -> list[Any]:
        """Returns the cases in which a text that is drawn in pieces differs from the whole text.

        `cases` holds texts, each with the ways to cut it: lists of offsets in UTF-16 units.
        """
        found: list[Any] = self.page.evaluate(
            _DIFFERENCES, [[text, list(ways)] for text, ways in cases]
        )
        return found

    def paste(self) -> str:
        """Returns the text of the clipboard, which no page may read in Firefox: keys paste it."""
        field = self.page.locator("#pasted")
        self.page.evaluate(_ADD_FIELD)
        field.press("Control+v")
        expect(field).not_to_have_value("")
        text = field.input_value()
        field.evaluate("field => field.remove()")
        return text

    @staticmethod
    def _without_repetition(html: str) -> str:
        return (
            html.replace(_LINK, "")
            .replace(_OWN_WAY, "")
            .replace('<div class="item">', "")
            .replace("</div></li>", "</li>")
        )


def show_diagram(drawing: Drawing, code: str) -> Locator:
    """Draws code of Mermaid and opens its picture. Returns the element around the picture."""
    drawing.draw(f"```mermaid\n{code}\n```")
    drawing.page.get_by_role("button", name="Show as a picture").click()
    picture = drawing.page.locator(".diagram")
    picture.wait_for()
    return picture
