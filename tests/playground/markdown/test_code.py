"""Blocks of code: colours, and the buttons to copy and to wrap."""

import pytest

from tests.playground.markdown.drawing import Drawing

COLOURS = {
    "python": (
        "async def f(x): return 'a' + \"b\" # c",
        ["async", "def", "f", "return", "'a'", '"b"', "# c"],
    ),
    "py": ('x = r"a\\" b" if True else 0x1F', ['r"a\\" b"', "if", "True", "else", "0x1F"]),
    "typescript": ("const a: string = `b ${c}`; // d", ["const", "string", "`b ${c}`", "// d"]),
    "json": ('{"a": [1, -2.5e3, true, "b"]}', ['"a"', "1", "-2.5e3", "true", '"b"']),
    "bash": (
        "if cd $HOME; then ls --all 'x'; fi # y",
        ["if", "cd", "$H", "then", "--all", "'x'", "fi", "# y"],
    ),
    "c++": (
        "#include <a>\nint f() { return 'x'; } /* y */",
        ["#include", "int", "f", "return", "'x'", "/* y */"],
    ),
    "html": (
        '<a href="b">c &amp; don\'t</a><!-- d -->',
        ["<a", "href", '="b"', ">", "&amp;", "</a>", "<!-- d -->"],
    ),
    "css": (
        ".a { color: #fff; width: 3px } /* b */",
        [".a", "color", "#fff", "width", "3px", "/* b */"],
    ),
    "sql": ("SELECT a FROM b WHERE c = 'd''e' -- f", ["SELECT", "FROM", "WHERE", "'d''e'", "-- f"]),
    "yaml": ("a: 1 # b\n- c: true", ["a", "1", "# b", "c", "true"]),
    "rust": ("fn f<'a>(x: &'a str) -> Option<u8> { 'b' }", ["fn", "'a", "'a", "str", "u8", "'b'"]),
    "go": ("func f() int { return len(`a`) }", ["func", "f", "int", "return", "len", "`a`"]),
    "diff": ("+a\n-b\n c", ["+a", "-b"]),
}


@pytest.mark.parametrize("language", COLOURS)
def test_tokens_are_coloured(drawing: Drawing, language: str) -> None:
    text, tokens = COLOURS[language]
    drawing.draw(f"```{language}\n{text}\n```")
    code = drawing.page.locator("main code")
    assert code.locator("[class^=token]").all_inner_texts() == tokens
    assert code.text_content() == f"{text}\n"


def test_a_comment_goes_on_over_lines_as_they_come(drawing: Drawing) -> None:
    pieces = ["```js\na /* b", "\nc\n", "d */ e", "\n```"]
    drawing.stages(pieces)
    assert drawing.page.locator(".token-comment").all_inner_texts() == ["/* b", "c", "d */"]


def test_no_language_has_no_colours(drawing: Drawing) -> None:
    drawing.draw("```\nif x\n```\n```klingon\nif x\n```\n\n    if x")
    assert drawing.page.locator("[class^=token]").count() == 0
    assert drawing.page.locator(".code-language").all_inner_texts() == ["Code", "klingon", "Code"]


def test_code_is_copied_as_it_was_written(drawing: Drawing) -> None:
    page = drawing.page
    drawing.draw("1. a\n   ```make\n   all:\n   \techo 'x'\n\n   end\n   ```")
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert drawing.paste() == "all:\n\techo 'x'\n\nend"


def test_long_lines_wrap_where_they_are_told_to(drawing: Drawing) -> None:
    page = drawing.page
    drawing.draw("```\n" + "word " * 500 + "\n```")
    is_wide = "(box => box.scrollWidth > box.clientWidth)(document.querySelector('main pre'))"
    assert page.evaluate(is_wide)
    page.get_by_role("button", name="Wrap").click()
    assert not page.evaluate(is_wide)
    assert page.get_by_role("button", name="Wrap").get_attribute("aria-pressed") == "true"
