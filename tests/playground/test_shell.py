"""The page can be installed, and opens from its offline copy while the server is away."""

import json
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from ouzel.config import ServerConfig
from ouzel.playground import LANGUAGES
from tests.api.serving import running_server
from tests.playground.accessibility import violations
from tests.playground.chromium import Troubles, User, skip_unless_chromium
from tests.playground.front import Front, serving_front

pytestmark = pytest.mark.release("the playground: the offline copy")

_CACHED = """async () => {
  const found = [];
  for (const name of await caches.keys())
    for (const request of await (await caches.open(name)).keys())
      found.push([name.split(" ").pop(), request.method, new URL(request.url).pathname]);
  return found;
}"""


@pytest.fixture
def installable(browser: Browser) -> Iterator[Page]:
    """Opens a page in a browser that may keep an offline copy."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    troubles = Troubles(page)
    yield page
    context.close()
    # Firefox reports files that the worker refuses to a page of another build.
    assert [each for each in troubles.found if "FetchEvent.respondWith" not in each] == []


@pytest.fixture
def front() -> Iterator[Front]:
    with serving_front() as front:
        yield front


def _wait_for_copy(user: User) -> None:
    """Waits until the offline copy is complete."""
    user.page.evaluate("navigator.serviceWorker.ready.then(() => null)")


def _wait_until_opened_again(user: User) -> None:
    user.page.wait_for_selector("body.ready #composer:visible")


def test_the_manifest_follows_the_language_and_the_prefix() -> None:
    with running_server(config=ServerConfig(root_path="/llm")) as server, server.client() as http:
        page = http.get("/llm/", headers={"accept": "text/html"}).text
        assert 'href="/llm/playground/manifest.webmanifest"' in page
        for language in LANGUAGES:
            answer = http.get(
                "/llm/playground/manifest.webmanifest", headers={"accept-language": language}
            )
            assert answer.headers["content-type"] == "application/manifest+json"
            manifest = answer.json()
            assert manifest["lang"] == language
            assert (manifest["start_url"], manifest["scope"]) == ("/llm/", "/llm/")
            assert (manifest["dir"] == "rtl") == (language == "ar")
        icons = manifest["icons"]
        assert {icon["purpose"] for icon in icons} == {"any", "maskable"}
        assert {"192x192", "512x512"} <= {icon["sizes"] for icon in icons}
        for icon in icons:
            assert http.get(icon["src"]).headers["content-type"] == icon["type"]


def test_chromium_finds_no_fault_in_the_manifest(user: User) -> None:
    skip_unless_chromium(user.page)
    session = user.page.context.new_cdp_session(user.page)
    answer = session.send("Page.getAppManifest")
    assert answer["errors"] == []
    assert json.loads(answer["data"])["name"] == "Ouzel"


def test_the_page_opens_without_its_server(installable: Page, front: Front) -> None:
    with running_server() as server:
        front.behind = server.url
        user = User(installable, front.url)
        user.open()
        user.ask("hello")
        _wait_for_copy(user)
        front.behind = None
        user.reload()
        expect(user.page.locator("#no-chat")).to_contain_text("The server is away.")
        expect(user.page.locator("#composer")).to_be_hidden()
        user.expect_titles("hello")
        user.page.click("#conversations .title")
        expect(user.page.locator(".message")).to_have_count(2)
        user.expect_texts("hello", "hello")
        assert violations(user.page) == []

        front.behind = server.url
        _wait_until_opened_again(user)
        assert user.ask("are you there?") == "are you there?"


def test_only_the_shell_is_kept(installable: Page) -> None:
    config = ServerConfig(api_key=("sk-right",), root_path="/llm")
    with running_server(config=config) as server:
        user = User(installable, f"{server.url}/llm/")
        user.page.goto(user.url)
        user.page.fill("#api-key", "sk-right")
        user.page.keyboard.press("Enter")
        user.page.wait_for_selector("body.ready")
        user.ask("hello")
        _wait_for_copy(user)
        user.reload()
        user.ask("hello")
        found = user.page.evaluate(_CACHED)
    assert len({build for build, _, _ in found}) == 1
    assert {method for _, method, _ in found} == {"GET"}
    paths = {path for _, _, path in found}
    assert {"/llm/", "/llm/playground/texts/en.json"} <= paths
    assert all(path == "/llm/" or path.startswith("/llm/playground/") for path in paths)
    assert "/llm/playground/texts/de.json" not in paths


def test_a_page_of_this_build_loads_its_files_from_the_copy(
    installable: Page, front: Front
) -> None:
    with running_server() as server:
        front.behind = server.url
        user = User(installable, front.url)
        user.open()
        _wait_for_copy(user)
        front.paths.clear()
        user.reload()
    assert "/" in front.paths
    files = [path for path in front.paths if path.startswith("/playground/modules/")]
    assert files == []


def test_another_version_replaces_the_copy_and_is_never_mixed(
    installable: Page, front: Front
) -> None:
    with running_server() as server:
        front.behind = server.url
        user = User(installable, front.url)
        user.open()
        _wait_for_copy(user)
        [before] = {build for build, _, _ in user.page.evaluate(_CACHED)}

        front.build = "f" * 24
        front.paths.clear()
        user.reload()
        # the new page came from the server as a whole
        assert "/playground/modules/main.js" in front.paths
        while {build for build, _, _ in user.page.evaluate(_CACHED)} != {front.build}:
            user.page.wait_for_timeout(20)
        assert before != front.build

        # a page of a third version, whose server goes away at once, gets no file of the second
        front.build = "e" * 24
        front.only = "/"
        with user.page.expect_event(
            "requestfailed", lambda request: request.url.endswith("/modules/main.js"), timeout=0
        ):
            user.page.goto(front.url)
        front.only = None


def test_a_person_forgets_the_copy(installable: Page, front: Front) -> None:
    with running_server() as server:
        front.behind = server.url
        user = User(installable, front.url)
        user.open()
        _wait_for_copy(user)
        user.open_settings()
        user.page.click("#offline-copy")
        expect(user.page.locator("#offline-copy")).to_have_text("Keep an offline copy")
        for name in (
            "Forget the offline copy",
            "Keep an offline copy",
        ):  # the page is not loaded again
            user.page.click("#offline-copy")
            expect(user.page.locator("#offline-copy")).to_have_text(name)
        assert violations(user.page) == []
        assert user.page.evaluate(_CACHED) == []
        user.reload()
        registrations = "navigator.serviceWorker.getRegistrations().then(all => all.length)"
        assert user.page.evaluate(registrations) == 0
        user.open_settings()
        user.page.click("#offline-copy")
        _wait_for_copy(user)
        assert user.page.evaluate(registrations) == 1


def test_a_server_without_playground_removes_the_copy(installable: Page, front: Front) -> None:
    with running_server() as server, running_server(config=ServerConfig(playground=False)) as other:
        front.behind = server.url
        user = User(installable, front.url)
        user.open()
        _wait_for_copy(user)
        front.behind = other.url
        user.page.evaluate("navigator.serviceWorker.getRegistration().then(each => each.update())")
        while user.page.evaluate(_CACHED) != []:
            user.page.wait_for_timeout(20)
        user.page.goto(front.url)
        expect(user.page.locator("h2").first).to_have_text("Base URLs")


def test_the_worker_may_serve_the_page_above_its_folder() -> None:
    for is_on, word in ((True, "openPage"), (False, "unregister")):
        config = ServerConfig(root_path="/llm", playground=is_on, api_key=("sk-right",))
        with running_server(config=config) as server:
            answer = httpx.get(f"{server.url}/llm/playground/worker.js", timeout=None)
        assert answer.headers["service-worker-allowed"] == "/llm/"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert word in answer.text
