"""Markdown looks the same however its text is cut, and fits into the terminal."""

import io
import random

import pytest
from rich.cells import cell_len
from rich.console import Console

from ouzel.terminal_chat.markdown.flow import Flow
from ouzel.terminal_chat.markdown.markdown_stream import MarkdownStream
from ouzel.terminal_chat.markdown.plain_stream import PlainStream

CASES = {
    "words": ("one two three four five", "one two three four\nfive\n"),
    "lines stay lines": ("Name: Anna\nAge: 23", "Name: Anna\nAge: 23\n"),
    "heading": ("# The *title*\n\ntext", "The title\n\ntext\n"),
    "emphasis": ("**bold** _it_ ~~no~~ ***both***", "bold it no both\n"),
    "no emphasis": ("2 * 3 * 4 snake_case_x", "2 * 3 * 4\nsnake_case_x\n"),
    "code in a line": ("use `a*b*c` here", "use a*b*c here\n"),
    "unclosed marks": ("an *open end\n`here", "an *open end\n`here\n"),
    "escapes": (r"\*not\* \_it\_", "*not* _it_\n"),
    "a link says where it leads": ("[text](http://a.b)", "text (http://a.b)\n"),
    "a bare address": ("<http://a.b>", "http://a.b\n"),
    "a picture": ("![alt](x.png)", "[alt] (x.png)\n"),
    "brackets": ("[1] and [x] y", "[1] and [x] y\n"),
    "bullets": (
        "- one\n* two\n  + three is a longer one",
        "• one\n• two\n  • three is a\n    longer one\n",
    ),
    "numbers": ("1. one\n10) ten has more words", "1. one\n10) ten has more\n    words\n"),
    "quote": ("> said by somebody else\n> > twice", "│ said by somebody\n│ else\n│ │ twice\n"),
    "rule": ("a\n\n---\nb", "a\n\n" + "─" * 20 + "\nb\n"),
    "empty lines": ("\n\na\n\n\n\nb\n\n", "a\n\nb\n\n"),
    "code": (
        "```python\nx = '*a*'  # b\n\n\ty\n```\nz",
        "```python\nx = '*a*'  # b\n\n    y\n```\nz\n",
    ),
    "code that does not end": ("~~~\na | b", "~~~\na | b\n"),
    "code in a list": ("- x\n  ```\n  if a:\n    b\n  ```", "• x\n  ```\n  if a:\n    b\n  ```\n"),
    "a fence in a fence": ("````\n```\nx\n```\n````", "````\n```\nx\n```\n````\n"),
    "table": (
        "|a|b|\n|-|-:|\n|1|22|\n\nx",
        "a        │        b\n─────────┼─────────\n1        │       22\n\nx\n",
    ),
    "no table": ("| a bar\nx", "| a bar\nx\n"),
    "a head alone": ("|a|\n|-|", None),
    "wide characters": ("日本語のテキストは折り返されます", "日本語のテキストは折\nり返されます\n"),
    "a word that no line holds": ("x" * 45, "x" * 20 + "\n" + "x" * 20 + "\n" + "x" * 5 + "\n"),
    "html is text": ("<b>x</b> &amp; y", "<b>x</b> & y\n"),
    "marks alone": ("*\n**\n#\n-\n>\n1.", None),
}


def shown(text: str, length: int, columns: int = 20) -> str:
    console = Console(file=io.StringIO(), width=columns, highlight=False)
    stream = MarkdownStream(console, Flow(console))
    for begin in range(0, len(text), length):
        stream.feed(text[begin : begin + length])
    stream.finish()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("name", CASES)
def test_the_screen_does_not_depend_on_the_pieces_of_the_text(name: str) -> None:
    text, expected = CASES[name]

    whole = shown(text, len(text))

    assert expected in (None, whole)
    for length in (1, 2, 3, 5, 8):
        assert shown(text, length) == whole


@pytest.mark.parametrize("seed", range(150))
def test_any_text_is_shown_whole_and_within_the_columns(seed: int) -> None:
    pick = random.Random(seed)
    parts = [
        "word ",
        "w",
        " ",
        "\n",
        "\n\n",
        "*",
        "**",
        "_",
        "`",
        "```",
        "~~",
        "[",
        "](",
        ")",
        "# ",
        "- ",
        "1. ",
        "> ",
    ]
    parts += ["|", "|-|", "\\", "日本", "    ", "x" * 30, "---", "é", "<", "&"]
    text = "".join(pick.choice(parts) for _ in range(pick.randrange(60)))

    whole = shown(text, max(len(text), 1))

    assert [shown(text, length) for length in (1, 3, 7)] == [whole] * 3
    for kept in ("word", "w", "x", "é", "日"):
        assert "".join(whole.split()).count(kept) == "".join(text.split()).count(kept)


@pytest.mark.parametrize("columns", [1, 5, 8, 19, 20, 21, 80])
def test_lines_are_no_wider_than_the_terminal(columns: int) -> None:
    text = (
        "some words, 日本語 and **a few of them bold**, " * 5
        + "\n- "
        + "item " * 30
        + "\n> "
        + "quote " * 30
    )

    lines = shown(text, 4, columns).split("\n")

    assert max(map(cell_len, lines)) <= max(columns, 10)


def test_words_are_shown_as_soon_as_they_are_whole() -> None:
    console = Console(file=io.StringIO(), width=40)
    stream = MarkdownStream(console, Flow(console))
    assert isinstance(console.file, io.StringIO)

    stream.feed("These words are he")
    assert console.file.getvalue() == "These words are"
    stream.feed("re **and these")
    assert console.file.getvalue() == "These words are here"


def test_an_unclosed_mark_does_not_hold_back_for_ever() -> None:
    console = Console(file=io.StringIO(), width=400)
    stream = MarkdownStream(console, Flow(console))
    assert isinstance(console.file, io.StringIO)

    stream.feed("a *mark " + "and words " * 30)

    assert console.file.getvalue().startswith("a *mark and words")


def test_styles_reach_a_terminal() -> None:
    console = Console(
        file=io.StringIO(), width=80, force_terminal=True, color_system="standard", _environ={}
    )
    stream = MarkdownStream(console, Flow(console))
    stream.feed("**bold** and `code`\n")
    stream.finish()

    assert isinstance(console.file, io.StringIO)
    assert "\x1b[1mbold\x1b[0m" in console.file.getvalue()
    assert "\x1b[36mcode\x1b[0m" in console.file.getvalue()


@pytest.mark.parametrize("length", [1, 3, 100])
def test_plain_text_flows_without_markdown(length: int) -> None:
    console = Console(file=io.StringIO(), width=20)
    stream = PlainStream(Flow(console))
    text = '{"a": "**b**", "c": [1, 2]}\n\nx'
    for begin in range(0, len(text), length):
        stream.feed(text[begin : begin + length])
    stream.finish()

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == '{"a": "**b**", "c":\n[1, 2]}\n\nx\n'


def test_a_word_of_any_length_is_shown_whole() -> None:
    """A picture in a data URL is such a word; a search from each character would be slow."""
    word = "QUJD" * 10_000
    assert "".join(shown(word, 4, 80).split()) == word
