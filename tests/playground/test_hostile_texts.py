"""Texts of models, users, tools, files and titles are never HTML: fifty attempts fail."""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from ouzel.config import MediaConfig
from tests.api.seeing import seeing_server
from tests.api.serving import RunningServer
from tests.playground.chromium import User
from tests.prompts.media.files import saved
from tests.prompts.vision.pictures import picture

HIT = "document.title='hit';window.hit=1"
ATTEMPTS = [
    f"<script>{HIT}</script>",
    f'<img src=x onerror="{HIT}">',
    f'<svg onload="{HIT}">',
    f"<svg><script>{HIT}</script></svg>",
    f'<body onload="{HIT}">',
    f'<details open ontoggle="{HIT}"><summary>x</summary></details>',
    f'<input autofocus onfocus="{HIT}">',
    f'<iframe srcdoc="<script>parent.{HIT}</script>"></iframe>',
    f'<iframe src="javascript:{HIT}"></iframe>',
    f'<object data="javascript:{HIT}"></object>',
    f'<embed src="javascript:{HIT}">',
    f'<a href="javascript:{HIT}">click</a>',
    f'<form action="javascript:{HIT}"><button>x</button></form>',
    f'<math><maction actiontype="statusline" xlink:href="javascript:{HIT}">x</maction></math>',
    '<meta http-equiv=refresh content="0;url=http://example.org/">',
    '<base href="http://example.org/">',
    '<link rel=stylesheet href="http://example.org/x.css">',
    "<style>@import url('http://example.org/x.css')</style>",
    "<style>body{display:none}</style>",
    f'<marquee onstart="{HIT}">x</marquee>',
    f'<video><source onerror="{HIT}"></video>',
    f'<audio src=x onerror="{HIT}"></audio>',
    f"<template><script>{HIT}</script></template>",
    f"</textarea><script>{HIT}</script>",
    f"</title><script>{HIT}</script>",
    f"<!--><script>{HIT}</script>-->",
    f"<![CDATA[<script>{HIT}</script>]]>",
    f"&lt;script&gt;{HIT}&lt;/script&gt;",
    f"&#60;img src=x onerror={HIT}&#62;",
    f"\\<script>{HIT}\\</script>",
    f"[a](javascript:{HIT})",
    f"[a](JaVaScRiPt:{HIT})",
    f"[a](java\tscript:{HIT})",
    f"[a](java&#10;script:{HIT})",
    f"[a](&#106;avascript:{HIT})",
    f"[a](\x01javascript:{HIT})",
    f"[a](javascript&colon;{HIT})",
    f"[a](<javascript:{HIT}>)",
    f"[a](vbscript:{HIT})",
    f"[a](data:text/html,<script>{HIT}</script>)",
    f'[a](//example.org/ "onclick={HIT}")',
    f"[a]: javascript:{HIT}\n\n[a]",
    f"<javascript:{HIT}>",
    f"![x](javascript:{HIT})",
    "![x](http://example.org/pixel.png)",
    f'![" onerror="{HIT}](x)',
    f'```" onmouseover="{HIT}\n</code></pre><script>{HIT}</script>\n```',
    f'| a |\n|---|\n| <img src=x onerror="{HIT}"> [x](javascript:{HIT}) |',
    f"$<script>{HIT}</script>$ \\[<img src=x onerror={HIT}>\\]",
    f"__proto__ constructor {{{{constructor.constructor('{HIT}')()}}}} ${{{HIT}}}",
]
FORBIDDEN = (
    "script, iframe, object, embed, svg, form, base, meta, style, link, video, audio, input, "
    "maction, math :is([href], [id], [class=primary])"
)

FURTHER = pytest.mark.release("hostile texts in further places of the playground")


LOOK = """forbidden => ({
    hit: window.hit ?? null,
    elements: [...document.querySelectorAll(".messages")]
        .flatMap(each => [...each.querySelectorAll(forbidden)]).map(each => each.localName),
    pictures: document.querySelectorAll(".messages img:not(.picture), #conversations img").length,
    links: [...document.querySelectorAll(".messages a")].map(each => each.protocol),
    handlers: [...document.querySelectorAll("*")].flatMap(each => each.getAttributeNames())
        .filter(name => name.startsWith("on")),
})"""


def untouched(user: User) -> None:
    """Nothing ran, and nothing is there that could."""
    seen = user.page.evaluate(LOOK, FORBIDDEN)
    assert set(seen.pop("links")) <= {"http:", "https:", "mailto:"}
    assert seen == {"hit": None, "elements": [], "pictures": 0, "handlers": []}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    media = MediaConfig(max_images=len(ATTEMPTS))
    with seeing_server(tmp_path_factory.mktemp("seeing"), media=media) as server:
        yield server


def test_the_attempts_are_fifty() -> None:
    assert len(set(ATTEMPTS)) == 50


def test_questions_and_answers_are_text(user: User) -> None:
    """Sends five texts at a time.

    The first also becomes the conversation's title and a search text."""
    for start in range(0, len(ATTEMPTS), 5):
        user.page.click("#new")
        text = "\n\n".join(ATTEMPTS[start : start + 5])
        user.ask(text)
        assert user.page.locator(".message.user .plain").text_content() == text.strip()
        untouched(user)
    user.page.fill("#search", ATTEMPTS[0])
    untouched(user)
    for link in user.page.locator(".messages a").all():
        link.hover()


@FURTHER
def test_reasoning_calls_and_results_are_text(user: User) -> None:
    user.open_settings()
    user.page.fill("#set-tools", '[{"name": "look"}]')
    user.page.click("#close-settings")
    text = "\n\n".join(ATTEMPTS)
    user.ask(f"<think>{text}</think>done")
    user.page.locator(".reasoning summary").last.click()
    untouched(user)
    call = json.dumps({"name": "look", "arguments": {attempt: attempt for attempt in ATTEMPTS}})
    user.ask(f"<tool_call>\n{call}\n</tool_call>")
    untouched(user)
    user.page.locator(".tool-result-form textarea").fill(text)
    user.click("Use this result")
    user.wait_for_answer()
    assert user.page.locator(".message.tool .content").text_content() == text
    untouched(user)


@FURTHER
def test_titles_are_text(user: User) -> None:
    user.ask("hello")
    expect(user.page.locator("#conversations .title")).to_have_count(1)
    for attempt in ATTEMPTS:
        title = " ".join(attempt.split())[:200]
        user.page.locator("#conversations .row-tools button").nth(2).click()  # Rename
        user.page.get_by_role("textbox", name="Title").fill(title)
        user.page.keyboard.press("Enter")
        user.wait_until(f"document.querySelector('#title').textContent === {json.dumps(title)}")
        untouched(user)


def test_names_of_files_are_text(
    seeing: RunningServer, user_at: Callable[[RunningServer], User]
) -> None:
    user = user_at(seeing)
    png = saved(picture(28, 28), "PNG")
    names = [attempt.replace("/", "_").replace("\n", " ") for attempt in ATTEMPTS]
    for name in names:
        user.choose_picture(name, png)
    expect(user.page.locator("#attachments img")).to_have_count(len(names))
    assert user.page.evaluate("window.hit") is None
    user.ask("look")
    untouched(user)
    user.choose_picture(names[0], b"\0", media_type="text/plain")
    expect(user.page.locator("#attachments .file-name")).to_contain_text("<script>")
    expect(user.page.locator("#attachments .file-state")).to_contain_text(
        "cannot read this kind of file"
    )
    untouched(user)


TEXT = {"type": "response.output_text.delta", "delta": "hi【1】"}
SEARCH = {"type": "file_search_call", "id": "a"}
MESSAGE = {"type": "message", "id": "b"}
# Events of /v1/responses that follow the first event
RESPONSES: list[list[object]] = [
    [None],
    [{"type": "response.output_item.done", "item": SEARCH | {"results": [{"filename": None}]}}],
    [{"type": "response.output_item.added", "item": {"type": "mcp_list_tools", "tools": "xyz"}}],
    [
        TEXT,
        {
            "type": "response.output_item.done",
            "item": MESSAGE
            | {"content": [{"text": "hi【1】", "annotations": [{"type": "x", "title": 5}]}]},
        },
    ],
]
# Deltas of /v1/chat/completions.
CHATS: list[object] = [
    None,
    {"tool_calls": [{"index": "__proto__", "id": "1", "function": {"name": "n"}}]},
    {"tool_calls": [{"index": 100_000_000, "id": "1", "function": {"name": "n"}}]},
]


def answer_with(user: User, path: str, events: list[object]) -> None:
    """Gives the next request for an answer these events."""
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    user.page.route(
        path,
        lambda route: route.fulfill(body=body, headers={"content-type": "text/event-stream"}),
        times=1,
    )


def test_events_of_another_form_end_an_answer_and_not_the_page(
    user: User, seeing: RunningServer, user_at: Callable[[RunningServer], User]
) -> None:
    fault = user.page.locator(".message").last.locator(".note.error")
    for events in RESPONSES:
        created = {"type": "response.created", "response": {"id": "resp_x"}, "sequence_number": 0}
        answer_with(user, "**/v1/responses", [created, *events])
        user.send("hello")
        expect(fault).to_contain_text("something that this page cannot read")
        user.wait_for_answer()
    assert user.ask("and on") == "and on"
    user = user_at(seeing)
    for delta in CHATS:
        answer_with(user, "**/v1/chat/completions", [{"choices": [{"delta": delta}]}])
        user.send("hello")
        expect(fault).to_contain_text("something that this page cannot read")
        user.wait_for_answer()
    ends = {"choices": [{"delta": {"content": "hi"}, "finish_reason": "constructor"}]}
    answer_with(user, "**/v1/chat/completions", [ends])
    assert user.ask("hello") == "hi"
    assert user.ask("and on") == "and on"


SHOW = """async (text) => {
    const { renderMarkdown } = await import('/playground/modules/markdown/view.js');
    const { whenDrawn } = await import('/playground/modules/markdown/formulas/formula_view.js');
    const place = document.createElement('div');
    document.querySelector('#thread').append(place);
    renderMarkdown(text, place);
    await whenDrawn();
    const count = (selector) => place.querySelectorAll(selector).length;
    const length = place.textContent.length;
    const seen = { length, drawn: count('math'), cells: count('td'), words: count('.word-piece') };
    place.remove();
    return seen;
}"""


def test_short_texts_do_not_become_huge(user: User) -> None:
    """The page stays usable, although each text once stopped it for many seconds."""

    def show(text: str) -> dict[str, int]:
        seen: dict[str, int] = user.page.evaluate(SHOW, text)
        return seen

    assert show("|a" * 900 + "|\n" + "|-" * 900 + "|\n" + "x\n" * 900)["cells"] < 12_000
    assert show("|a" * 2000 + "|\n" + "|-" * 2000 + "|\nx")["cells"] == 0
    assert show("|a|b|\n|-|-|\n|x|")["cells"] == 2
    assert show("a" + "\u0301" * 20_000 + " e\u0301")["length"] == 31 + 3
    assert show("a" * 20_000)["words"] == 20
    assert show("http://%/" * 10_000)["length"] == 90_000
    assert show("[](a" * 20_000)["length"] == 80_000
    assert show(r"$$\begin{alignat}{99999999}a\end{alignat}$$")["drawn"] == 0
    assert show(r"$$\let\B\begin\B{alignat}{99999999}a\end{alignat}$$")["drawn"] == 0
    assert show(r"$$\begin{alignat}{2}a&=b\end{alignat}$$")["drawn"] == 1
    assert show(r"$$\begin{pmatrix*}[r]a&b\end{pmatrix*}$$")["drawn"] == 1


def test_arguments_are_shown_as_they_are_sent(user: User) -> None:
    written = user.page.evaluate(
        "async (text) => "
        "(await import('/playground/modules/chat/hosted_texts.js')).formatted(text)",
        '{"to":"a","to":"b\u202e\u200b","n":12345678901234567890,"empty":[{}],"\\u00e9":null}',
    )
    assert written == (
        '{\n  "to": "a",\n  "to": "b\\u{202e}\\u{200b}",\n  "n": 12345678901234567890,\n'
        '  "empty": [\n    {}\n  ],\n  "é": null\n}'
    )
