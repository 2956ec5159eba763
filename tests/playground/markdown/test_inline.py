"""Inline Markdown (links, code, emphasis) becomes the right HTML elements."""

import pytest

from tests.playground.markdown.drawing import Drawing


def link(href: str, text: str) -> str:
    return f'<a href="{href}" title="{href}">{text}</a>'


LONG = "https://a.b/c_d_(e)?f=g"
CASES = {
    "emphasis": ("*a* _b_ ***c***", "<em>a</em> <em>b</em> <em><strong>c</strong></em>"),
    "strong emphasis": ("**a** __b__", "<strong>a</strong> <strong>b</strong>"),
    "nested emphasis": ("**a *b* c**", "<strong>a <em>b</em> c</strong>"),
    "marks in words": ("snake_case_name and a*b*c", "snake_case_name and a<em>b</em>c"),
    "marks between blanks": ("2 * 3 * 4 _ 5", "2 * 3 * 4 _ 5"),
    "marks without ends": ("*a **b", "*a **b"),
    "crossing marks": ("*a _b* c_", "<em>a _b</em> c_"),
    "three against one": ("***a** b*", "<em><strong>a</strong> b</em>"),
    "crossed out": ("~~a~~ ~b~ ~~~c~~~ x", "<del>a</del> ~b~ ~~~c~~~ x"),
    "code": (
        "`a` ``b`c`` ` d ` `` e ``",
        "<code>a</code> <code>b`c</code> <code>d</code> <code>e</code>",
    ),
    "marks in code": ("`*a*` *`b*`*", "<code>*a*</code> <em><code>b*</code></em>"),
    "code without an end": ("a `b", "a `b"),
    "escapes": ("\\*a\\* \\[b] \\a \\\\", "*a* [b] \\a \\"),
    "character references": (
        "&lt;b&gt; &#65; &#x42; &hellip; &nothing; &#0;",
        "&lt;b&gt; A B … &amp;nothing; \ufffd",
    ),
    "hard breaks": ("a  \nb\\\nc", "a<br>b<br>c"),
    "a link": ("[a *b*](https://a.b/c)", link("https://a.b/c", "a <em>b</em>")),
    "a link with a title": (
        '[a](https://a.b/c "T")',
        '<a href="https://a.b/c" title="T\nhttps://a.b/c">a</a>',
    ),
    "an address in brackets": ("[a](<https://a.b/c d>)", link("https://a.b/c%20d", "a")),
    "parentheses in an address": (
        "[a](https://a.b/c_(d)) x",
        link("https://a.b/c_(d)", "a") + " x",
    ),
    "mail": (
        "[a](mailto:b@c.de) <b@c.de>",
        link("mailto:b@c.de", "a") + " " + link("mailto:b@c.de", "b@c.de"),
    ),
    "no link in a link": (
        "[a [b](https://b.c/) d](https://e.f/)",
        f"[a {link('https://b.c/', 'b')} d]({link('https://e.f/', 'https://e.f/')})",
    ),
    "brackets": ("[a] [b][c] [d] (e)", "[a] [b][c] [d] (e)"),
    "relative addresses lead nowhere": (
        "[a](b.html) [c](/d) [e](#f)",
        "[a](b.html) [c](/d) [e](#f)",
    ),
    "an address as it is": (
        "See https://a.b/c_d_(e)?f=g, (http://h.i).",
        f"See {link(LONG, LONG)}, ({link('http://h.i/', 'http://h.i')}).",
    ),
    "an emphasised address": (
        "**https://a.b/c**",
        f"<strong>{link('https://a.b/c', 'https://a.b/c')}</strong>",
    ),
    "a word before an address": ("xhttps://a.b", "xhttps://a.b"),
    "an address in brackets of its own": (
        "<https://a.b/c>",
        link("https://a.b/c", "https://a.b/c"),
    ),
    "an address as the text of a link": (
        "[https://a.b/](https://c.d/)",
        link("https://c.d/", "<span>https://a.b/</span>"),
    ),
    "a picture": (
        "![a *b*](https://a.b/c.png)",
        '<a href="https://a.b/c.png" class="image-link" data-label="Picture:" '
        'title="https://a.b/c.png">a <em>b</em></a>',
    ),
    "sums of money": ("$5 and $6, US$7 or $8-$9", "$5 and $6, US$7 or $8-$9"),
    "an escaped parenthesis": ("\\(a", "(a"),
    "HTML": (
        '<b onclick="x">a</b> <!-- c -->',
        '&lt;b onclick="x"&gt;a&lt;/b&gt; &lt;!-- c --&gt;',
    ),
    "emphasis by ideographs": ("中**文**字", "中<strong>文</strong>字"),
}


@pytest.mark.parametrize(("text", "html"), CASES.values(), ids=CASES.keys())
def test_inline_markdown_becomes_html(drawing: Drawing, text: str, html: str) -> None:
    assert drawing.draw(text) == f"<p>{html}</p>"


def test_links_open_in_a_new_tab_without_a_referrer(drawing: Drawing) -> None:
    drawing.draw("[a](https://a.b/c) https://d.e/ <https://f.g/>")
    for node in drawing.page.locator("main a").all():
        assert node.get_attribute("rel") == "noopener noreferrer nofollow"
        assert node.get_attribute("target") == "_blank"


def test_an_open_mark_is_drawn_as_if_it_were_closed(drawing: Drawing) -> None:
    pieces = ["It is **bol", "d", "** and `co", "de", "` and [a li", "nk](https://a.b", "/c) so"]
    assert drawing.stages(pieces) == [
        "<p>It is <strong>bol</strong></p>",
        "<p>It is <strong>bold</strong></p>",
        "<p>It is <strong>bold</strong> and <code>co</code></p>",
        "<p>It is <strong>bold</strong> and <code>code</code></p>",
        "<p>It is <strong>bold</strong> and <code>code</code> and [a li</p>",
        (
            "<p>It is <strong>bold</strong> and <code>code</code> and <span "
            'class="unfinished-link">a link</span></p>'
        ),
        (
            "<p>It is <strong>bold</strong> and <code>code</code> "
            f"and {link('https://a.b/c', 'a link')} so</p>"
        ),
    ]


def test_ambiguous_marks_at_the_start_of_a_line_are_held_back(
    drawing: Drawing,
) -> None:
    shown = drawing.stages(["a\n", "-", "-", "-\n", "1", ".", " ", "b", "\n#", "#", " c"])
    assert shown[1] == shown[2] == "<p>a</p>"
    assert shown[4] == shown[6] == '<h4 class="level-2">a</h4>'
    assert (
        shown[-1]
        == '<h4 class="level-2">a</h4><ol><li><p>b</p></li></ol><h4 class="level-2">c</h4>'
    )
