"""Blocks of Markdown become the right HTML elements."""

import pytest

from tests.playground.markdown.drawing import Drawing

CASES = {
    "paragraphs": ("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"),
    "spaces around lines": ("  one  \n   two", "<p>one<br>two</p>"),
    "headings": (
        "# One\n## Two ##\n####### no",
        '<h3 class="level-1">One</h3><h4 class="level-2">Two</h4><p>####### no</p>',
    ),
    "a hash without a space": ("#tag", "<p>#tag</p>"),
    "lines under a heading": (
        "One\n===\nTwo\n---",
        '<h3 class="level-1">One</h3><h4 class="level-2">Two</h4>',
    ),
    "rules": ("***\n\n- - -\n\n___", "<hr><hr><hr>"),
    "a list": ("- one\n- two", "<ul><li><p>one</p></li><li><p>two</p></li></ul>"),
    "a loose list": (
        "* one\n\n* two",
        '<ul class="loose"><li><p>one</p></li><li><p>two</p></li></ul>',
    ),
    "another bullet begins another list": (
        "- one\n+ two",
        "<ul><li><p>one</p></li></ul><ul><li><p>two</p></li></ul>",
    ),
    "a list with a start": (
        "3. one\n4. two",
        '<ol start="3"><li><p>one</p></li><li><p>two</p></li></ol>',
    ),
    "a year at the start of a line": ("It was in\n1984. So.", "<p>It was in\n1984. So.</p>"),
    "a nested list": (
        "1. one\n   - two\n     - three\n2. four",
        "<ol><li><p>one</p><ul><li><p>two</p><ul><li><p>three</p></li></ul></li></ul></li>"
        "<li><p>four</p></li></ol>",
    ),
    "tasks": (
        "- [ ] one\n- [x] two\n- [y] three",
        '<ul><li class="task"><input type="checkbox" disabled="" aria-label="To do"><p>one</p></li>'
        '<li class="task"><input type="checkbox" disabled="" checked="" '
        'aria-label="Done"><p>two</p></li>'
        "<li><p>[y] three</p></li></ul>",
    ),
    "two paragraphs in an item": (
        "- one\n\n  two",
        '<ul class="loose"><li><p>one</p><p>two</p></li></ul>',
    ),
    "a paragraph behind a list": ("- one\n\ntwo", "<ul><li><p>one</p></li></ul><p>two</p>"),
    "quotes": (
        "> one\n> > two\n\nthree",
        "<blockquote><p>one</p><blockquote><p>two</p></blockquote></blockquote><p>three</p>",
    ),
    "a quote that goes on without its mark": (
        "> one\ntwo",
        "<blockquote><p>one\ntwo</p></blockquote>",
    ),
    "HTML is text": ("<div>\n*a*\n</div>", "<p>&lt;div&gt;\n<em>a</em>\n&lt;/div&gt;</p>"),
    "a definition of a link is text": (
        "[a]: https://a.b/c x",
        '<p>[a]: <a href="https://a.b/c" title="https://a.b/c">https://a.b/c</a> x</p>',
    ),
}


@pytest.mark.parametrize(("text", "html"), CASES.values(), ids=CASES.keys())
def test_blocks_become_html(drawing: Drawing, text: str, html: str) -> None:
    assert drawing.draw(text) == html


def test_lines_may_end_with_carriage_returns(drawing: Drawing) -> None:
    assert drawing.draw("# a\r\n\r\n- b\r\n- c") == drawing.draw("# a\n\n- b\n- c")


def test_a_table_is_aligned_and_has_as_many_cells_as_its_head(drawing: Drawing) -> None:
    drawing.draw(
        "Before:\n| a | b | c |\n|:--|:-:|--:|\n| 1 | `x \\| y` |\n| 1 | 2 | 3 | 4 |\n\nbehind"
    )
    page = drawing.page
    assert page.locator("th").all_inner_texts() == ["a", "b", "c"]
    assert page.locator("td").all_inner_texts() == ["1", "x | y", "", "1", "2", "3"]
    assert [node.get_attribute("class") for node in page.locator("th").all()] == [
        "align-start",
        "align-center",
        "align-end",
    ]
    assert page.locator("main p").all_inner_texts() == ["Before:", "behind"]


def test_a_wide_table_scrolls_in_its_own_box(drawing: Drawing) -> None:
    columns = 40
    drawing.draw(
        "| wide |" + " columnnumber |" * columns + "\n|" + "---|" * (columns + 1) + "\n| a |"
    )
    assert drawing.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert drawing.page.evaluate(
        "(box => box.scrollWidth > box.clientWidth)(document.querySelector('.table-box'))"
    )


def test_depth_has_a_limit_and_the_rest_is_text(drawing: Drawing) -> None:
    drawing.draw("> " * 5000 + "deep")
    assert 20 < drawing.page.locator("blockquote").count() < 60
    assert drawing.page.locator("main p").inner_text().endswith("> > deep")
