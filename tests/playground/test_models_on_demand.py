"""Models that come and go, in the playground of a real server."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.playground.chromium import User
from tests.serve.running import serving
from tests.serve.test_models_come_and_go import copy_demo

pytestmark = pytest.mark.release("the playground: models on demand")


def test_models_are_loaded_and_unloaded_by_hand(page: Page, tmp_path: Path) -> None:
    copy_demo(tmp_path / "models" / "a")
    broken = copy_demo(tmp_path / "models" / "broken")
    (broken / "config.json").unlink()
    (broken / "config.json").write_text('{"model_type": "qwen3"}')
    with serving(
        *("--models-dir", str(tmp_path / "models"), "--no-store"),
        cache_dir=tmp_path / "cache",
        environment={**os.environ, "OUZEL_ADMIN_API_KEY": "sk-admin"},
    ) as server:
        user = User(page, server.root)
        user.open()
        page.click("#model")
        dialog, state = page.locator("dialog"), page.locator(".models-state")
        first, second = dialog.locator(".models > li").nth(0), dialog.locator(".models > li").nth(1)
        expect(first).to_contain_text("on the disk; a question loads it")
        expect(first).to_contain_text("fits the memory for models")
        page.fill("#admin-key", "sk-admin")
        page.press("#admin-key", "Enter")
        dialog.get_by_role("button", name="Load a", exact=True).click()
        expect(state).to_have_text("a is loaded.")
        expect(first).to_contain_text("in memory")
        dialog.get_by_role("button", name="Load broken").click()
        expect(second).to_contain_text("could not be loaded")
        expect(state).to_have_class("models-state fault")
        expect(state).to_contain_text("broken")
        dialog.get_by_role("button", name="Unload a").click()
        expect(first).to_contain_text("on the disk; a question loads it")
        dialog.get_by_role("button", name="a", exact=True).click()
        assert user.ask("12+5?") == "12 + 5 = 17"  # the question has loaded it
