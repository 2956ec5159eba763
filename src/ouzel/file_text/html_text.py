"""Turns HTML into text, with headings and lists as in Markdown.

The whole text is kept, also navigation: it may be an uploaded document of any kind.
"""

import re
from html.parser import HTMLParser

_SKIPPED = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_BLOCK_NAMES = """
address article aside blockquote body br caption dd details dialog div dl dt fieldset figcaption
figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table td th tr
ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_APART = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "ul", "ol", "dl"})
_CELLS = frozenset({"td", "th"})
_SPACES = re.compile(r"[ \t\r\n\f]+")
_MANY_BREAKS = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read_html(text: str) -> str:
    """Returns the text of an HTML document."""
    parser = _TextParser()
    parser.feed(text)
    parser.close()
    return _MANY_BREAKS.sub("\n\n", "".join(parser.pieces)).strip()


class _TextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._skipped: list[str] = []  # open elements without visible text
        self._num_pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self._skipped.clear()
        if tag in _SKIPPED:
            self._skipped.append(tag)
        elif tag in _CELLS:
            self.pieces.append(" ")
        elif tag in _BLOCKS:
            self.pieces.append("\n\n" if tag in _APART else "\n")
        if tag == "li":
            self.pieces.append("- ")
        elif tag == "pre":
            self._num_pre += 1
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self.pieces.append("#" * int(tag[1]) + " ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipped:
            while self._skipped.pop() != tag:
                pass
        elif tag in _CELLS:
            self.pieces.append(" |")
        elif tag in _BLOCKS:
            self.pieces.append("\n\n" if tag in _APART else "\n")
        if tag == "pre":
            self._num_pre = max(self._num_pre - 1, 0)

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        self.pieces.append(data if self._num_pre else _SPACES.sub(" ", data))
