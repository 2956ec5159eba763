"""Takes pictures of single features of the playground.

The servers of the formulas, of the comparison and of the completion box have test models, which
repeat a text: the demo model writes no formulas, and there is only one of it.
"""

from pathlib import Path

from playwright.sync_api import Browser

from tests.api.serving import running_server
from tests.playground.chromium import User
from tests.playground.two_models import ADMIN_KEY, serving_two_models
from tests.serve.running import RunningServer

_FORMULAS = r"""The roots of $ax^2 + bx + c = 0$ are

$$x_{1,2} = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$$

and for a matrix

$$\det\begin{pmatrix} a & b \\ c & d \end{pmatrix} = ad - bc,
\qquad \sum_{k=1}^{n} k = \frac{n(n+1)}{2}$$

| Discriminant | Real roots |
|---|--:|
| $b^2 > 4ac$ | 2 |
| $b^2 = 4ac$ | 1 |

- [x] written as MathML
- [ ] fetched from elsewhere"""

_DIAGRAMS = """```mermaid
graph LR
  A[Question] --> B{Tools?}
  B -->|yes| C[MCP server]
  C --> D(Answer)
  B -->|no| D
```

```html
<h1 style="font: 2rem serif; color: teal">A page in a frame without a network</h1>
<button onclick="this.textContent = 'It runs'">Try it</button>
```"""


def take_formulas(browser: Browser, server: RunningServer, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 640}, color_scheme="light")
    with running_server({"max_model_len": 8192}) as parrot:
        user = User(page, parrot.url)
        user.open()
        user.ask(_FORMULAS)
        page.locator(".message.assistant mfrac").first.wait_for()
        page.locator(".message.assistant").screenshot(path=path)
        page.close()


def take_comparison(browser: Browser, server: RunningServer, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 640}, color_scheme="light")
    with serving_two_models() as two:
        user = User(page, two.url)
        user.open()
        page.click("#open-compare")
        user.send("Which birds walk under water?")
        page.locator(".message.assistant .figures").nth(1).wait_for()
        page.screenshot(path=path)
        page.close()


def take_models(browser: Browser, server: RunningServer, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 680}, color_scheme="dark")
    with serving_two_models(admin_key=ADMIN_KEY) as two:
        user = User(page, two.url)
        user.open()
        page.click("#model")
        page.fill("#admin-key", ADMIN_KEY)
        page.press("#admin-key", "Enter")
        page.locator("#pull-name").wait_for()
        page.locator("dialog").screenshot(path=path)
        page.close()


def take_right_to_left(browser: Browser, server: RunningServer, path: Path) -> None:
    context = browser.new_context(
        viewport={"width": 1000, "height": 640}, color_scheme="light", locale="ar"
    )
    page = context.new_page()
    user = User(page, server.root)
    user.open()
    user.ask("Hello!")
    user.ask("What is 17 plus 25?")
    page.screenshot(path=path)
    context.close()


def take_diagrams(browser: Browser, server: RunningServer, path: Path) -> None:
    """Takes a diagram and a page that a model has written, as they are shown."""
    page = browser.new_page(viewport={"width": 1000, "height": 1000})
    with running_server({"max_model_len": 8192}) as parrot:
        user = User(page, parrot.url)
        user.open()
        user.ask(_DIAGRAMS)
        answer = page.locator(".message.assistant")
        user.click("Show as a picture", answer)
        user.click("Preview", answer)
        page.frame_locator("iframe").get_by_role("button").click()
        page.mouse.move(0, 0)
        page.screenshot(path=path)
        page.close()
