"""A failed answer stays in sight, and the model never reads two questions in a row."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import violations
from tests.playground.chromium import User
from tests.playground.stored import wait_until_stored
from tests.playground.test_resumed_answers import reopen
from tests.prompts.families import QWEN

pytestmark = pytest.mark.release("the playground: failed answers")

# refuses two user messages in a row, as the templates of Mistral and Gemma do
STRICT = (
    "{%- for message in messages %}{%- if loop.index0 % 2 == 1 and message.role == 'user' %}"
    "{{- raise_exception('user and assistant must take turns') }}{%- endif %}{%- endfor %}" + QWEN
)
UserAt = Callable[[RunningServer], User]


@pytest.fixture(scope="module")
def strict() -> Iterator[RunningServer]:
    with running_server(chat_template=STRICT) as server:
        yield server


@pytest.fixture(scope="module")
def storing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    store_url = f"sqlite:///{tmp_path_factory.mktemp('failed') / 'store.sqlite3'}"
    with running_server(chat_template=STRICT, store_url=store_url) as server:
        yield server


def fail(user: User, text: str) -> None:
    """Sends a question with a setting that the server refuses."""
    user.open_settings()
    user.page.fill("#set-stop", "\n".join("abcdefghij" * 7))
    user.ask(text)
    expect(user.page.locator(".note.error").last).to_contain_text("stop")
    user.page.fill("#set-stop", "")
    user.page.press("#set-stop", "Tab")
    user.wait_until(
        "import('/playground/modules/storage/database.js').then(({ all }) => all())"
        ".then((records) => records.every(({ settings }) => settings.stop === ''))"
    )


@pytest.mark.parametrize("name", ["strict", "storing"])
def test_a_failed_answer_stays_in_sight_and_the_next_question_is_answered(
    name: str, request: pytest.FixtureRequest, user_at: UserAt
) -> None:
    user = user_at(request.getfixturevalue(name))
    fail(user, "fails")
    user.ask("once more")
    user.ask("and on")
    user.expect_texts("fails", "", "once more", "once more", "and on", "and on")
    note = user.page.locator(".note.error")
    expect(note).to_contain_text("The model does not see this question.")
    expect(note).not_to_have_attribute("role", "alert")
    assert violations(user.page) == []
    wait_until_stored(user, 5)
    reopen(user)
    expect(user.page.locator(".message").last).to_contain_text("and on")
    assert [text for text in user.texts if text] == user.texts[:1] + ["once more"] * 2 + [
        "and on"
    ] * 2
    assert user.ask("again") == "again"


def test_a_failed_answer_is_tried_again_beside_what_came_later(
    strict: RunningServer, user_at: UserAt
) -> None:
    user = user_at(strict)
    fail(user, "fails")
    user.ask("once more")
    user.click("Try again", user.message(1))
    user.wait_for_answer()
    user.expect_texts("fails", "fails")
    user.click("Branch before", user.message(1))
    user.expect_texts("fails", "", "once more", "once more")


def test_a_question_without_an_answer_can_be_asked_again(
    storing: RunningServer, user_at: UserAt
) -> None:
    user = user_at(storing)
    fail(user, "fails")
    wait_until_stored(user, 1)
    reopen(user)
    expect(user.page.locator(".note")).to_contain_text("There is no answer.")
    assert violations(user.page) == []
    user.click("Try again")
    user.wait_for_answer()
    user.expect_texts("fails", "fails")
    expect(user.page.locator(".note")).to_have_count(0)
