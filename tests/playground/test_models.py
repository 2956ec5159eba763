"""A dialog shows the models and their abilities; the holder of the admin key changes them."""

from collections.abc import Callable

import httpx
from playwright.sync_api import Locator, expect

from tests.api.pulling import ScriptedPuller
from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import violations
from tests.playground.chromium import User
from tests.playground.two_models import ADMIN_KEY, FIRST, SECOND, serving_two_models

UserAt = Callable[[RunningServer], User]


def open_models(user: User) -> Locator:
    user.page.click("#model")
    dialog = user.page.locator("dialog")
    expect(dialog).to_be_visible()
    return dialog


def give_key(user: User, key: str) -> None:
    user.page.fill("#admin-key", key)
    user.page.press("#admin-key", "Enter")


def test_the_dialog_says_what_each_model_can_do(user_at: UserAt) -> None:
    with serving_two_models() as server:
        user = user_at(server)
        dialog = open_models(user)
        rows = dialog.locator(".models > li")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("4,096 tokens of context")
        expect(rows.first.locator(".ability")).to_contain_text(["chats"])
        expect(rows.first).to_have_attribute("aria-current", "true")
        expect(dialog).to_contain_text("started without an admin key")
        assert dialog.get_by_role("button", name="Unload").count() == 0
        assert violations(user.page) == []
        user.page.keyboard.press("Tab")
        user.page.keyboard.press("Enter")
        expect(user.page.locator("#model-name")).to_have_text(SECOND)
        expect(user.page.locator("#model")).to_be_focused()


def test_the_holder_of_the_admin_key_unloads_a_model(user_at: UserAt) -> None:
    with serving_two_models(admin_key=ADMIN_KEY) as server:
        user = user_at(server)
        dialog = open_models(user)
        state = dialog.locator(".models-state")
        give_key(user, "wrong")
        dialog.get_by_role("button", name=f"Unload {SECOND}").click()
        expect(state).to_contain_text("the admin key is needed")
        give_key(user, ADMIN_KEY)
        dialog.get_by_role("button", name=f"Unload {SECOND}").click()
        expect(state).to_have_text(f"{SECOND} is unloaded.")
        expect(dialog.locator(".models > li")).to_have_count(1)
        assert violations(user.page) == []
        assert [each["id"] for each in httpx.get(f"{server.url}/v1/models").json()["data"]] == [
            FIRST
        ]


def test_a_download_shows_its_progress_and_can_be_stopped(user_at: UserAt) -> None:
    puller = ScriptedPuller()
    with serving_two_models(admin_key=ADMIN_KEY, puller=puller) as server:
        user = user_at(server)
        dialog = open_models(user)
        give_key(user, ADMIN_KEY)
        state = dialog.locator(".models-state")
        user.page.fill("#pull-name", "owner/model")
        user.page.click("#pull")
        expect(dialog.locator(".pull-progress")).to_contain_text("50 bytes of 100 bytes")
        assert violations(user.page) == []
        dialog.get_by_role("button", name="Stop the download").click()
        expect(state).to_contain_text("was stopped")
        expect(user.page.locator("#pull-name")).to_be_focused()
        puller.may_end.set()
        user.page.click("#pull")
        expect(state).to_have_text("owner/model is here.")
        dialog.get_by_role("button", name="Load owner/model").click()
        expect(state).to_have_text("there is no directory owner/model")
        user.page.fill("#pull-name", "owner/large")
        user.page.click("#pull")
        expect(state).to_contain_text("/disk has 1 GB free")


def test_a_server_with_one_model_offers_no_other_one(user_at: UserAt) -> None:
    with running_server(names=("parrot",)) as server:
        user = user_at(server)
        user.ask("hello")
        name = "Regenerate with another model"
        assert user.page.get_by_role("button", name=name).count() == 0
