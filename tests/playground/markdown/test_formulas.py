"""TeX becomes MathML, whole or streamed; TeX that cannot be drawn is shown with the reason."""

import hashlib
import random

import pytest
from playwright.sync_api import Page, expect

from ouzel.playground import DIRECTORY
from tests.playground.markdown.corpus import CORPUS, FORMULAS
from tests.playground.markdown.drawing import Drawing
from tests.playground.markdown.test_cuts import ways_to_cut

# Returns each formula's TeX, whether it is displayed, and its symbols in the order of the tree.
_SHOWN = """() => [...document.querySelectorAll("main .formula")].map(each => [
    each.dataset.tex, each.classList.contains("displayed"),
    [...each.querySelectorAll("mi, mn, mo, mtext")].map(leaf => leaf.textContent).join(""),
])"""
# The versions in the repository, without the line that makes a module of each.
_VENDORED = {
    "temml.js": ("1ab19148afe0dbc836b7a74f344071b3f3a70a7a8259ae4049e76894fcdf8d95", slice(0, -1)),
    "chemistry.js": (
        "c63a7800e842a6846e7e8af6e05b3eb225783b92a7818f9868a2554375c57523",
        slice(1, None),
    ),
}
FENCES = {
    "dollars": ("so $x+1$ is", False),
    "parentheses": ("so \\(x+1\\) is", False),
    "two dollars": ("so $$x+1$$ is", True),
    "brackets": ("so \\[x+1\\].", True),
    "lines": ("$$\nx\n+1\n$$", True),
    "lines in brackets": ("\\[\n  x+\n  1\n\\]", True),
    "text before lines": ("so\n$$\nx+1\n$$\nis", True),
    "a line": ("$$ x+1 $$", True),
    "a list": ("1. so\n   $$\n   x+1\n   $$\n2. is", True),
    "an item": ("- $x+1$", False),
    "a quote": ("> \\[\n> x+1\n> \\]", True),
    "a table": ("| a |\n|---|\n| $x+1$ |", False),
    "a heading": ("# About $x+1$", False),
    "emphasis": ("**so $x+1$**", False),
}


@pytest.mark.parametrize("subject", CORPUS)
def test_formulas_of_models_become_mathml(drawing: Drawing, subject: str) -> None:
    formulas = CORPUS[subject]
    drawing.draw("\n\n".join(f"\\[ {formula} \\]" for formula in formulas))
    page = drawing.page
    faults = "[...document.querySelectorAll('code.maths')].map(node => node.title + node.innerText)"
    assert page.evaluate(faults) == []
    assert page.locator("main math").count() == len(formulas)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_corpus_is_large() -> None:
    assert len(set(FORMULAS)) >= 150


@pytest.mark.parametrize(("text", "is_displayed"), FENCES.values(), ids=FENCES.keys())
def test_a_formula_may_stand_anywhere(drawing: Drawing, text: str, is_displayed: bool) -> None:
    drawing.draw(text)
    [(tex, was_displayed, symbols)] = drawing.page.evaluate(_SHOWN)
    assert "".join(tex.split()) == symbols == "x+1"
    assert was_displayed == is_displayed


def test_an_environment_needs_no_marks(drawing: Drawing) -> None:
    text = "\\begin{align}\na &= \\begin{cases} 1 \\end{cases} \\\\\nb &= 2\n\\end{align}"
    inner = "\\begin{array}{c}\n\\begin{array}{c} x \\end{array}\n\\end{array}"
    drawing.draw(f"so\n{text}\nis\n\n{inner}\n\n\\begin{{pmatrix}} y \\end{{pmatrix}}")
    shown = drawing.page.evaluate(_SHOWN)
    assert [tex for tex, _, _ in shown] == [text, inner, "\\begin{pmatrix} y \\end{pmatrix}"]
    assert [symbols for _, _, symbols in shown] == ["a={1b=2", "x", "(y)"]
    assert drawing.page.locator("main p").all_inner_texts() == ["so", "is"]


def test_money_and_escapes_are_no_formulas(drawing: Drawing) -> None:
    text = "$5 and $10, US$7 or $8-$9, a\\$b\\$, `$x$` and $20,000"
    text += "\n\nEither $5 or $10: see $x_1 and 4 $ or 5."
    drawing.draw(text)
    assert drawing.page.evaluate(_SHOWN) == []
    drawing.draw("```\n$x$\n```\n\n    $$x$$")
    assert drawing.page.evaluate(_SHOWN) == []


def test_marks_of_markdown_in_a_formula_are_tex(drawing: Drawing) -> None:
    drawing.draw("$a*b*c_d_e$ and $x < y$ and $\\{a\\} \\& [b](c)$")
    assert [tex for tex, _, _ in drawing.page.evaluate(_SHOWN)] == [
        "a*b*c_d_e",
        "x < y",
        "\\{a\\} \\& [b](c)",
    ]
    assert drawing.page.locator("main :is(em, a)").count() == 0


@pytest.mark.parametrize(
    ("tex", "reason"),
    [
        ("\\frac{1", "This formula cannot be read"),
        ("\\nosuchcommand x", "This formula cannot be read: Unsupported function name"),
        ("x^2^3", "This formula cannot be read: Double superscript"),
        ("x+" * 4000, "This formula is too long"),
    ],
)
def test_tex_that_cannot_be_read_is_shown_with_the_reason(
    drawing: Drawing, tex: str, reason: str
) -> None:
    drawing.draw(f"$$\n{tex}\n$$")
    code = drawing.page.locator("main code.maths")
    assert code.text_content() == tex
    assert reason in (code.get_attribute("title") or "")


def test_a_formula_without_an_end_stays_tex(drawing: Drawing) -> None:
    drawing.draw("$$\nx^2\n\nand more")
    assert drawing.page.locator("main code.maths").inner_text() == "x^2"
    assert drawing.page.locator("main p").inner_text() == "and more"


def test_a_formula_that_streams_is_drawn_when_it_is_whole(drawing: Drawing) -> None:
    drawing.draw("$x$")  # loads Temml
    stages = drawing.stages(["$$\nx", "^2\n", "$", "$\n", "so $", "y", "$ it", " is"])
    assert ["<math" in stage for stage in stages] == [False, False, False, *[True] * 5]
    assert [stage.count("<math") for stage in stages[-2:]] == [2, 2]


def test_streamed_formulas_are_the_same(drawing: Drawing) -> None:
    text = "\n\n".join(text for text, _ in FENCES.values())
    text += "\n\n\\begin{align}\na &= b\n\\end{align}\n\n$\\bad{$ \\(\\frac{a}{b}\\)\n"
    choose = random.Random(4)
    assert drawing.differences([(text, list(ways_to_cut(text, choose)))]) == []


def test_the_tex_of_a_formula_can_be_copied(drawing: Drawing) -> None:
    page = drawing.page
    drawing.draw("So $x^2$ is\n\n$$\n\\frac{a}{b}\n$$\n\nthe end.")
    page.get_by_role("button", name="Copy TeX").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert drawing.paste() == "\\frac{a}{b}"
    page.evaluate("getSelection().selectAllChildren(document.querySelector('main'))")
    page.keyboard.press("Control+c")
    assert drawing.paste() == "So $x^2$ is\n$$\\frac{a}{b}$$\nthe end."


def test_a_wide_formula_scrolls_in_its_own_box(drawing: Drawing) -> None:
    drawing.draw("$$\n" + " + ".join(f"x_{{{number}}}" for number in range(200)) + "\n$$")
    page = drawing.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator(".formula-box")
    box.focus()
    page.keyboard.press("ArrowRight")
    expect(box).not_to_have_js_property("scrollLeft", 0)


def test_nothing_is_loaded_for_a_text_without_formulas(page: Page, drawing: Drawing) -> None:
    page.reload()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    drawing.draw("It costs $5 and $10.")
    assert not [url for url in requests if "temml" in url]
    drawing.draw("$x$")
    assert [url.rsplit("/", 1)[1] for url in requests if "temml" in url] == ["temml.js"]
    drawing.draw("$\\ce{H2O}$")
    loaded = [url.rsplit("/", 1)[1] for url in requests if "temml" in url]
    assert loaded == ["temml.js", "chemistry.js"]


@pytest.mark.parametrize("name", _VENDORED)
def test_the_library_is_the_published_one(name: str) -> None:
    digest, part = _VENDORED[name]
    path = DIRECTORY / "modules" / "markdown" / "formulas" / "temml" / name
    lines = path.read_text().removesuffix("\n").split("\n")
    published = "\n".join(lines[part])
    assert hashlib.sha256(published.encode()).hexdigest() == digest
    assert not set(published) & {"\u2028", "\u2029"}
