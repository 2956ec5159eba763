"""Draws Markdown within a line: emphasis, code and links.

While a line streams, text that may still be a part of an open mark is held back.
"""

import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.text import Text

from ouzel.terminal_chat.markdown.flow import whole_words

_MAX_HELD = 200  # an open mark is plain text if it is not closed within so many characters
_STYLES = {"strong": "bold", "em": "italic", "s": "strike", "link": "underline"}
_MARKS = re.compile(r"\\.?|`+|\*+|_+|~~|!?\[")
_markdown = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")


def settled(source: str) -> int:
    """Returns how many characters of an unfinished line can be drawn now.

    They are whole words, and end before the first mark that is still open.
    """
    at = 0
    while (match := _MARKS.search(source, at)) is not None:
        end = _find_end(source, match)
        if end is None:
            if len(source) - match.start() > _MAX_HELD:
                at = match.end()
                continue
            return whole_words(source[: match.start()])
        at = end
    return max(whole_words(source), 0)


def _find_end(source: str, match: re.Match[str]) -> int | None:
    """Returns the end of the element that begins with this mark; None if it may still follow."""
    mark, end = match[0], match.end()
    if mark[0] == "\\":
        return end if len(mark) == 2 else None
    if mark[0] == "`":
        return _closing(source, end, mark, lambda at: True)
    if mark.endswith("["):
        return _find_link_end(source, end)
    if end == len(source):
        return None
    before = source[match.start() - 1] if match.start() else " "
    if source[end].isspace() or (mark[0] == "_" and before.isalnum()):
        return end
    return _closing(source, end, mark, lambda at: not source[at - 1].isspace())


def _closing(source: str, begin: int, mark: str, may_close: Callable[[int], bool]) -> int | None:
    """Finds the next run of marks that equals `mark` and may close it; returns its end."""
    for match in re.finditer(f"{re.escape(mark[0])}+", source[begin:]):
        at, end = begin + match.start(), begin + match.end()
        if match[0] == mark and may_close(at) and (end < len(source) or mark[0] == "~"):
            return end
    return None


def _find_link_end(source: str, begin: int) -> int | None:
    close = source.find("]", begin)
    if close < 0 or close + 1 == len(source):
        return None
    if source[close + 1] != "(":
        return begin  # brackets only
    end = source.find(")", close)
    return None if end < 0 else end + 1


def inline_text(source: str, style: str = "") -> Text:
    """Draws the Markdown of a line, or of a part that `settled` has found."""
    core = source.strip()
    text = Text(style=style)
    text.append(source[: len(source) - len(source.lstrip())])
    for token in _markdown.parseInline(core) if core else ():
        _append(text, token.children or [])
    if core:
        text.append(source[len(source.rstrip()) :])
    return text


def _append(text: Text, tokens: list[Token]) -> None:
    styles: list[str] = []
    targets: list[str] = []
    for token in tokens:
        kind, _, side = token.type.rpartition("_")
        if side == "open" and kind in _STYLES:
            styles.append(_STYLES[kind])
            targets.append(str(token.attrs.get("href", "")))
        elif side == "close" and kind in _STYLES:
            styles.pop()
            _append_target(text, targets.pop())
        elif token.type == "code_inline":
            text.append(token.content, " ".join([*styles, "cyan"]))
        elif token.type == "image":
            text.append(f"[{token.content}]", " ".join(styles))
            _append_target(text, str(token.attrs.get("src", "")))
        else:
            is_break = token.type in ("softbreak", "hardbreak")
            text.append(token.content or (" " if is_break else ""), " ".join(styles))


def _append_target(text: Text, target: str) -> None:
    """Adds the target of a link unless the text is the target: a hidden target could mislead."""
    if target and not text.plain.endswith(target.removeprefix("mailto:")):
        text.append(f" ({target})", "dim")
