"""Walks through the states of the playground, for tests that look at each of them.

A walk calls `look` with the name of each state when the page is in it. Add new states to a walk:
the tests of accessibility, of translations and of Firefox then look at them too.
"""

from collections.abc import Callable

from playwright.sync_api import expect

from tests.playground.chromium import User

Look = Callable[[str], None]
Walk = Callable[[User, Look], None]
_ANSWER = (
    "# Title\n\n<think>no</think>\n\n| a | b |\n|--|--|\n| 1 | `2` |\n\n"
    "```python\nx = 1\n```\n\n- a\n- [ ] b\n\n> c\n\n$x^2$ and ![d](https://example.org/d.png)"
)
_MARKDOWN = (
    "So $x^2$[^1] is\n\n$$\n\\frac{a}{b} + \\text{x}\n$$\n\nand\n\n"
    "\\[ " + " + ".join(f"x_{{{number}}}" for number in range(60)) + " \\] not $\\frac{$.\n\n"
    "[^1]: A note.\n\n```html\n<p>1</p>\n```\n\n"
    "```mermaid\ngraph LR\n  1{2} -->|3| 4[(5)]\n  subgraph 6\n    4\n  end\n```\n\n"
    "```mermaid\nsequenceDiagram\n  1->>2: 3\n  loop 4\n    2-->>1: 5\n  end\n```\n\n"
    '```mermaid\npie\n  "1" : 2\n  "3" : 4\n```\n\n```mermaid\ngantt\n```\n\n'
    "```mermaid\nstateDiagram-v2\n  [*] --> 1\n  state 1 {\n    2 --> 3 : 4\n  }\n```\n\n"
    "```mermaid\nmindmap\n  1\n    2\n    3\n    4\n```\n\n"
    "```mermaid\ngantt\n  section 1\n  2 :done, 2026-01-01, 9d\n```"
)


def walk_through_chat(user: User, look: Look) -> None:
    """Asks, edits, and looks at the buttons of a message."""
    page = user.page
    look("empty")
    user.ask(_ANSWER)
    user.ask("<think>hm</think>[link](https://example.org) and **text**")
    look("answers")
    user.click("Regenerate")
    user.wait_for_answer()
    look("branches")
    user.click("Edit", user.message(0))
    look("editor")
    user.click("Cancel", user.message(0))
    user.click("Request")
    page.wait_for_selector("dialog[open]")
    look("request")
    page.keyboard.press("Escape")


def walk_through_markdown(user: User, look: Look) -> None:
    """Shows formulas, notes, a page and diagrams in an answer."""
    page = user.page
    user.ask(_MARKDOWN)
    expect(page.locator(".message").last.locator(".formula math")).to_have_count(3)
    for name in ("Preview", "Show as a picture"):
        for control in page.locator(".code-head button", has_text=name).all():
            user.use(control)
    expect(page.locator("iframe")).to_have_count(1)
    expect(page.locator(".diagram svg")).to_have_count(6)
    look("formulas, notes, a page and diagrams")


def walk_through_settings(user: User, look: Look) -> None:
    """Opens all sections of the settings, and asks for the probabilities of tokens."""
    page = user.page
    user.open_settings()
    user.write("#set-temperature", "9")
    look("settings")
    user.write("#set-temperature", "")
    user.write("#set-tools", "[")
    user.switch("#set-hasSchema")
    user.write("#set-schema", "[")
    look("faults in settings")
    user.write("#set-tools", "")
    user.write("#set-schema", '{"type": "integer"}')
    user.close_settings()
    user.ask("no number")
    look("an answer against its schema")
    user.open_settings()
    user.switch("#set-hasSchema", is_on=False)
    user.switch("#set-showsTokens")
    user.close_settings()
    user.ask("tokens")
    user.click("Tokens")
    look("tokens")
    user.reach(page.locator(".tokens"))
    page.keyboard.press("ArrowRight")
    look("a token")


def walk_through_dialogs(user: User, look: Look) -> None:
    page = user.page
    page.keyboard.press("Alt+KeyH")
    page.wait_for_selector("dialog[open]")
    look("keys")
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+KeyF")
    user.use(page.locator("#open-tokenizer"))
    user.write("#tokenizer-text", "some words")
    expect(page.locator(".plain-tokens .token").first).to_be_visible()
    look("tokenizer")
    page.keyboard.press("Escape")
    _uncover(user)


def walk_through_list(user: User, look: Look) -> None:
    """Uses the list of conversations, in which there is at least one."""
    page = user.page
    page.keyboard.press("Alt+KeyF")
    look("conversations")
    user.write("#search", "nothing like it")
    look("nothing found")
    user.write("#search", "")
    row = page.locator("#conversations li").first
    for index, state in enumerate(("pin", "file", "rename", "export", "delete")):
        user.point_at(row.locator(".title"))
        user.use(row.locator(".row-tools button").nth(index))
        if state == "file":
            expect(page.locator("#filing-folder")).to_be_focused()
        if state == "delete":
            expect(page.locator("#notice .action")).to_be_visible()
        look(state)
        page.keyboard.press("Escape")
    is_over = page.locator("#close-sidebar").is_visible()
    user.click("Undo", page.locator("#notice"))
    if is_over:  # the list closes by itself, as the conversation is shown again
        expect(page.locator("#sidebar")).to_be_hidden()
    else:
        expect(page.locator("#conversations .title").first).to_be_focused()


def walk_through_failures(user: User, look: Look) -> None:
    """Asks a server that is busy, and asks again."""
    page = user.page
    busy = {"status": 503, "body": "{}", "headers": {"retry-after": "3000"}}
    page.route("**/v1/**", lambda route: route.fulfill(**busy))
    user.send("are you there?")
    again = page.locator(".message").last.get_by_role("button", name="Try now")
    expect(again).to_be_visible()
    look("busy")
    page.unroute("**/v1/**")
    user.use(again)
    user.wait_for_answer()
    look("answered at last")


def _uncover(user: User) -> None:
    """Closes the list where it lies over the conversation."""
    close = user.page.locator("#close-sidebar")
    if close.is_visible():
        user.use(close)


CHAT_WALKS: tuple[Walk, ...] = (
    walk_through_chat,
    walk_through_markdown,
    walk_through_settings,
    walk_through_dialogs,
    walk_through_list,
    walk_through_failures,
)
