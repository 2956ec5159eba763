"""The server of the page calls MCP servers that a person names by their addresses."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ouzel.config.media_hosts import read_media_hosts
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp_kind import McpKind
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.mcp_server import KeyCheck, make_server, running
from tests.playground.accessibility import violations
from tests.playground.chromium import User

pytestmark = pytest.mark.release("the playground: own MCP servers")

ADD = write_call("add", {"a": 2, "b": 3})
SECRET = "tok-0123456789"


@pytest.fixture(scope="module")
def mcp_url() -> Iterator[str]:
    with running(KeyCheck(make_server().streamable_http_app(), f"Bearer {SECRET}")) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
def server(mcp_url: str, tmp_path: Path) -> Iterator[RunningServer]:
    hosts = read_media_hosts((mcp_url.split("/")[2],))
    mcp = McpKind({}, hosts, timeout_s=60.0, max_answer_bytes=10**6)
    hosted = HostedKinds((mcp,), takes_mcp_urls=True)
    url = f"sqlite:///{tmp_path / 'store.sqlite3'}"
    with thinking_server(url, max_model_len=32768, hosted=hosted) as server:
        yield server


def add_server(user: User, url: str, key: str) -> None:
    user.page.fill("#mcp-label", "own")
    user.page.fill("#mcp-url", url)
    user.page.fill("#mcp-key", key)
    user.page.get_by_role("button", name="Add this server").click()


def test_a_server_of_ones_own_is_called_after_a_decision(
    page: Page, server: RunningServer, mcp_url: str
) -> None:
    user = User(page, server.url)
    user.open()
    user.open_settings()
    add_server(user, mcp_url, SECRET)
    expect(page.locator(".mcp-servers li")).to_contain_text("with a token of this tab")
    assert violations(page) == []
    add_server(user, mcp_url, SECRET)
    expect(page.locator(".mcp-form .fault")).to_have_text("There is a server own already.")
    user.ask(ADD)
    user.click("Allow")
    user.wait_for_answer()
    assert "the sum is 5" in user.answer
    user.click("Request")
    assert "TOKEN" in page.locator("pre.request").inner_text()
    assert SECRET not in page.locator("pre.request").inner_text()
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export <tool_call>").click()
        user.click("JSON, with all branches", page.locator("dialog"))
    exported = download.value.path().read_text()
    assert json.loads(exported)["settings"]["mcpServers"][0]["url"] == mcp_url
    assert SECRET not in exported
    assert SECRET not in page.evaluate("JSON.stringify(localStorage)")
    page.locator(".mcp-servers").get_by_role("button", name="Remove own").click()
    expect(page.locator(".mcp-servers")).to_be_hidden()
    user.wait_until("document.activeElement.id === 'mcp-label'")


def test_a_server_that_allows_no_addresses_has_no_field_for_them(user: User, page: Page) -> None:
    user.open_settings()
    assert page.locator("#mcp-url").count() == 0
