"""Two models answer one question side by side."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.serving import RunningServer
from tests.playground.accessibility import LOOKS, violations
from tests.playground.chromium import User
from tests.playground.two_models import FIRST, SECOND, serving_two_models

pytestmark = pytest.mark.release("the playground: comparisons")


@pytest.fixture(scope="module")
def two_models() -> Iterator[RunningServer]:
    with serving_two_models() as server:
        yield server


def open_comparison(page: Page, server: RunningServer) -> User:
    user = User(page, f"{server.url}/#/compare")
    user.open()
    expect(page.locator("#compare")).to_be_visible()
    return user


def columns(user: User) -> list[Locator]:
    return [user.page.locator(".column").nth(index) for index in (0, 1)]


def answers(user: User) -> list[str]:
    return [
        column.locator(".message.assistant .content").last.inner_text() for column in columns(user)
    ]


def test_both_models_answer_and_one_conversation_goes_on(
    page: Page, two_models: RunningServer
) -> None:
    user = User(page, two_models.url)
    user.open()
    page.click("#open-compare")
    expect(page.locator("#prompt")).to_be_visible()
    expect(page.locator(".compare-hint")).to_be_visible()
    first, second = columns(user)
    expect(first.locator(".column-model")).to_have_text(FIRST)
    expect(second.locator(".column-model")).to_have_text(SECOND)
    user.ask("hello")
    assert answers(user) == ["hello", "hello"]
    expect(page.locator(".compare-hint")).to_be_hidden()
    expect(second.locator(".message.assistant .role")).to_have_text(f"Answer · {SECOND}")
    expect(second.locator(".figures")).to_contain_text("tokens/s")
    user.ask("and again")
    assert answers(user) == ["and again", "and again"]
    titles = page.locator("#conversations .title")
    expect(titles).to_have_count(2)
    for model in (FIRST, SECOND):  # the list begins with the answer that ended last
        expect(titles.get_by_text(f"hello · {model}", exact=True)).to_be_visible()
    second.get_by_role("button", name="Go on with this one").click()
    expect(page.locator("#compare")).to_be_hidden()
    expect(page.locator("#model-name")).to_have_text(SECOND)
    assert user.ask("more") == "more"
    assert page.locator("#thread .message.user").count() == 3
    expect(page.locator("#conversations .title")).to_have_count(2)


def test_escape_stops_both(page: Page) -> None:
    with serving_two_models(step_s=0.01) as server:
        user = open_comparison(page, server)
        user.send("word " * 300)
        for column in columns(user):
            expect(column.locator(".message.assistant .content")).to_contain_text("word word")
        page.keyboard.press("Escape")
        user.wait_for_answer()
        for column in columns(user):
            expect(column.locator(".note")).to_have_text("Stopped.")
        for engine in [each.model.engine for each in server.catalogue]:
            while engine.num_unfinished > 0:
                page.wait_for_timeout(20)


def test_each_column_has_its_own_settings(page: Page, two_models: RunningServer) -> None:
    user = open_comparison(page, two_models)
    first, second = columns(user)
    first.get_by_role("button", name="Settings").click()
    page.fill("#set-system", "Be brief.")
    second.get_by_role("button", name="Settings").click()
    expect(page.locator("#set-system")).to_have_value("")  # the other column's
    page.fill("#set-system", "Be long.")
    second.locator(".column-model").click()
    page.locator("dialog").get_by_role("button", name=FIRST, exact=True).click()
    expect(second.locator(".column-model")).to_have_text(FIRST)
    user.ask("hello")
    for column, system in zip((first, second), ("Be brief.", "Be long."), strict=True):
        user.click("Request", column)
        expect(page.locator("pre.request")).to_contain_text(system)
        user.close_dialog()
    page.click("#new")
    expect(page.locator("#set-system")).to_have_value("")  # columns set nothing for others


def test_a_compared_conversation_is_opened_from_the_list(
    page: Page, two_models: RunningServer
) -> None:
    user = open_comparison(page, two_models)
    user.ask("hello")
    page.locator("#conversations .title").first.click()
    expect(page.locator("#compare")).to_be_hidden()
    assert user.ask("more") == "more"
    expect(page.locator("#conversations .title")).to_have_count(2)
    page.click("#open-compare")
    expect(page.locator(".column .message")).to_have_count(0)


def test_answers_go_on_where_one_is_opened_from_the_list(page: Page) -> None:
    text = ("word " * 60).strip()
    with serving_two_models(step_s=0.01) as server:
        user = open_comparison(page, server)
        user.send(text)
        expect(columns(user)[1].locator(".message.assistant .content")).to_contain_text("word")
        page.locator("#conversations .title", has_text=FIRST).click()
        expect(page.locator("#thread .message.assistant .content")).to_have_text(text)
        user.wait_for_answer()
        page.locator("#conversations .title", has_text=SECOND).click()
        expect(page.locator("#thread .message.assistant .made-by")).to_have_text(SECOND)
        expect(page.locator("#thread .message.assistant .content")).to_have_text(text)
        user.wait_for_answer()
        expect(page.locator("#thread .note")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_comparison_keeps_the_rules_of_accessibility(
    page: Page, two_models: RunningServer, width: int, scheme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    user = open_comparison(page, two_models)
    assert violations(page) == []
    user.ask("hello")
    assert violations(page) == []
    if width < 700:
        tabs = page.locator(".column-tabs button")
        expect(page.locator(".column").nth(1)).to_be_hidden()
        tabs.nth(1).click()
        expect(page.locator(".column").nth(1)).to_be_visible()
        expect(page.locator(".column").nth(0)).to_be_hidden()
        assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
