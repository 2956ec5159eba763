"""A hostile Markdown text runs no script, sends no request, and links to pages or mail only."""

import pytest
from playwright.sync_api import Page

from tests.playground.markdown.drawing import Drawing

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
]  # fmt: skip
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
}
ATTRIBUTES = {
    *(
        "aria-label",
        "aria-pressed",
        "checked",
        "class",
        "disabled",
        "href",
        "rel",
        "role",
        "scope",
        "start",
        "tabindex",
    ),
    *("dir", "target", "title", "type"),
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
    for node in page.locator("main :is(img, button, summary)").all():
        node.click()
    assert page.evaluate("window.attacked") is None


def test_the_attacks_are_at_least_fifty() -> None:
    assert len(set(ATTACKS)) >= 50
