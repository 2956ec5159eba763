"""Settings belong to a conversation; presets are kept in the browser and go to others as files."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.api.serving import RunningServer
from tests.playground.chromium import User
from tests.playground.stored import wait_until_stored
from tests.playground.two_models import FIRST, SECOND, serving_two_models


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    path: Path = tmp_path_factory.mktemp("two") / "store.sqlite3"
    with serving_two_models(store_url=f"sqlite:///{path}") as server:
        yield server


@pytest.fixture
def user(page: Page, two_models: RunningServer) -> User:
    user = User(page, two_models.url)
    user.open()
    return user


def open_conversation(user: User, title: str) -> None:
    user.page.locator("#conversations .title", has_text=title).first.click()
    expect(user.page.locator("#title")).to_have_text(title)
    wait_for_settings(user.page)


def begin_conversation(page: Page) -> None:
    page.click("#new")
    wait_for_settings(page)


def wait_for_settings(page: Page) -> None:
    """Waits until the fields belong to the conversation that is shown."""
    expect(page.locator("#settings-fields[aria-busy]")).to_have_count(0)


def offer_preset_file(user: User, content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    file = FilePayload(name="presets.json", mimeType="application/json", buffer=text.encode())
    user.page.set_input_files("#preset-file", file)


def test_settings_come_back_with_their_conversation(user: User, page: Page) -> None:
    user.open_settings()
    page.fill("#set-temperature", "0.3")
    page.fill("#set-system", "Be brief.")
    user.choose_model(SECOND)
    user.ask("first")
    begin_conversation(page)
    expect(page.locator("#set-system")).to_have_value("Be brief.")  # those used last
    page.fill("#set-system", "Be long.")
    page.fill("#set-temperature", "")
    user.choose_model(FIRST)
    user.ask("second")
    open_conversation(user, "first")
    expect(page.locator("#set-system")).to_have_value("Be brief.")
    assert page.input_value("#set-temperature") == "0.3"
    expect(page.locator("#model-name")).to_have_text(SECOND)
    page.fill("#set-system", "Be brief and kind.")  # is kept without another message
    open_conversation(user, "second")
    expect(page.locator("#set-system")).to_have_value("Be long.")
    user.reload()
    open_conversation(user, "first")
    user.open_settings()
    expect(page.locator("#set-system")).to_have_value("Be brief and kind.")
    user.ask("again")
    user.click("Request")
    body = page.locator("pre.request").inner_text()
    assert "Be brief and kind." in body
    assert SECOND in body


def test_an_answer_names_its_model_and_another_model_makes_a_branch(
    user: User, page: Page, two_models: RunningServer
) -> None:
    user.ask("who are you?")
    answer = page.locator(".message.assistant")
    expect(answer.locator(".role")).to_have_text(f"Answer · {FIRST}")
    user.click("Regenerate with another model")
    page.locator("dialog").get_by_role("button", name=SECOND, exact=True).click()
    expect(answer.locator(".role")).to_have_text(f"Answer · {SECOND}")
    user.wait_for_answer()
    expect(page.locator("#model-name")).to_have_text(FIRST)  # the conversation's own stays
    names = answer.locator(".branch-model")
    expect(names).to_have_text([FIRST, SECOND])
    names.first.click()
    expect(answer.locator(".role")).to_have_text(f"Answer · {FIRST}")
    wait_until_stored(user, 3)
    user.reload()
    open_conversation(user, "who are you?")
    expect(answer.locator(".branch-model")).to_have_text([FIRST, SECOND])
    key = page.locator("#conversations li.current").get_attribute("data-key")
    with two_models.client() as http:
        metadata = http.get(f"/v1/conversations/{key}").json()["metadata"]
    assert json.loads(metadata["page"])["models"] == {FIRST: [1], SECOND: [2]}


def test_a_preset_is_saved_chosen_renamed_and_deleted(user: User, page: Page) -> None:
    user.open_settings()
    page.fill("#set-temperature", "0.7")
    page.get_by_role("button", name="Save these settings").click()
    page.fill("#preset-name", "warm")
    page.press("#preset-name", "Enter")
    expect(page.locator("#preset")).to_have_value("warm")
    page.fill("#set-temperature", "0.1")
    page.select_option("#preset", "")
    page.select_option("#preset", "warm")
    expect(page.locator("#set-temperature")).to_have_value("0.7")
    page.select_option("#begin-with", "preset:warm")
    page.fill("#set-temperature", "0.2")
    begin_conversation(page)
    expect(page.locator("#set-temperature")).to_have_value("0.7")
    page.select_option("#preset", "warm")
    expect(page.get_by_role("button", name="Rename", exact=True)).to_be_visible()
    page.get_by_role("button", name="Rename", exact=True).click()
    page.fill("#preset-name", "hot")
    page.press("#preset-name", "Enter")
    expect(page.locator("#begin-with")).to_have_value("preset:hot")
    settings = page.locator("#settings")
    settings.get_by_role("button", name="Delete", exact=True).click()
    user.click("Delete", page.locator("dialog"))
    expect(page.locator("#preset option")).to_have_text(["None is saved yet"])
    expect(page.locator("#begin-with")).to_have_value("last")


def test_presets_go_from_one_browser_to_another(user: User, page: Page) -> None:
    user.open_settings()
    page.fill("#set-system", "Be brief.")
    page.get_by_role("button", name="Save these settings").click()
    page.fill("#preset-name", "brief")
    page.press("#preset-name", "Enter")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export all").click()
    file = json.loads(download.value.path().read_text())
    assert file["presets"]["brief"]["system"] == "Be brief."
    file["presets"] = {"from elsewhere": {"system": "Hello.", "surprise": 1, "stop": 7}}
    offer_preset_file(user, file)
    state = page.locator(".preset-state")
    expect(state).to_have_text(
        "1 preset was imported. Not known here and left out: surprise, stop."
    )
    page.select_option("#preset", "from elsewhere")
    expect(page.locator("#set-system")).to_have_value("Hello.")
    offer_preset_file(user, {"presets": {}})
    expect(state).to_have_text("The file has no presets of Ouzel.")
    offer_preset_file(user, "{")
    expect(state).to_contain_text("The file is no JSON")


def test_a_preset_from_elsewhere_lets_no_server_be_called_unseen(user: User, page: Page) -> None:
    user.open_settings()
    evil = {"label": "evil", "url": "https://evil.example/mcp", "isUsed": True}
    values = {"mcpServers": [evil], "asksForApproval": False}
    offer_preset_file(user, {"format": "ouzel.presets", "presets": {"free": values}})
    page.select_option("#preset", "free")
    expect(page.locator("#preset")).to_have_value("free")
    stored = json.loads(page.evaluate("localStorage.getItem('ouzel.settings')"))
    assert (stored["mcpServers"], stored["asksForApproval"]) == ([], True)


def test_what_an_earlier_page_has_stored_is_read(page: Page, two_models: RunningServer) -> None:
    earlier = {"model": SECOND, "numbers": {"temperature": "0.4"}, "isOnServer": False}
    page.goto(two_models.url)
    page.evaluate("text => localStorage.setItem('ouzel.settings', text)", json.dumps(earlier))
    user = User(page, two_models.url)
    user.open()
    expect(page.locator("#model-name")).to_have_text(SECOND)
    user.open_settings()
    assert page.input_value("#set-temperature") == "0.4"
    assert not page.is_checked("#set-isOnServer")
