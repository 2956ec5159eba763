"""Tool calls, structured output and tokens in the playground."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import User

UserAt = Callable[[RunningServer], User]
WRONG_TOOLS = {
    "[": "Tools: ",
    '[{"name": "a b"}]': ("Tools: each must have a name of at most 64 letters, digits, - and _"),
    '{"name": "clock"}': "Tools: clock is the name of a built-in tool",
}


def call(name: str, **arguments: object) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


@pytest.fixture(scope="module")
def guided() -> Iterator[RunningServer]:
    with running_server(engine_factory="create_grammar_parrot") as server:
        yield server


def test_built_in_tools_answer_by_themselves(user: User) -> None:
    user.open_settings()
    user.page.check("#tool-calculator")
    user.ask(call("calculator", expression="2 * (3 + 4) ** 2"))
    expect(user.page.locator(".message.tool .content")).to_have_text("98")
    user.wait_for_answer()
    assert [each for each in user.texts if "98" in each]


def test_a_built_in_tool_can_be_run_by_hand(user: User) -> None:
    user.open_settings()
    user.page.check("#tool-clock")
    user.page.uncheck("#set-runsBuiltinTools")
    user.ask(call("clock", time_zone="UTC"))
    user.click("Run")
    expect(user.page.locator(".tool-result-form textarea")).to_have_value(re.compile("UTC"))
    user.click("Use this result")
    user.wait_for_answer()
    assert "UTC" in user.page.locator(".message.tool .content").inner_text()


def test_results_of_ones_own_tools_are_typed_for_each_call(user: User) -> None:
    user.open_settings()
    user.page.fill(
        "#set-tools", '[{"name": "weather"}, {"type": "function", "function": {"name": "news"}}]'
    )
    user.ask(call("weather", city="Ulm") + call("news"))
    assert user.page.locator(".tool-name").all_inner_texts() == ["Calls weather", "Calls news"]
    first = user.page.locator(".tool-call").nth(0)
    second = user.page.locator(".tool-call").nth(1)
    first.locator("textarea").fill("rain")
    second.locator("textarea").fill("none")
    user.click("Use this result", first)
    expect(second.locator("textarea")).to_be_focused()
    user.click("Use this result", second)
    user.wait_for_answer()
    results = user.page.locator(".message.tool .content")
    assert results.all_inner_texts() == ["rain", "none"]
    assert "none" in user.answer
    user.click("Edit", user.message(2))
    user.page.fill(".editor", "sun")
    user.click("Send as another branch", user.message(2))
    user.wait_for_answer()
    assert results.all_inner_texts() == ["sun", "none"]


def test_malformed_tools_are_named(user: User) -> None:
    user.open_settings()
    for text, fault in WRONG_TOOLS.items():
        user.page.fill("#set-tools", text)
        assert user.page.locator('.fault[data-of="Tools"]').inner_text().startswith(fault), text
        user.page.fill("#set-tools", "")
        expect(user.page.locator('.fault[data-of="Tools"]')).to_be_empty()


def test_an_answer_by_a_schema_is_checked(guided: RunningServer, user_at: UserAt) -> None:
    user = user_at(guided)
    user.open_settings()
    user.page.check("#set-hasSchema")
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    user.page.fill("#set-schema", json.dumps(schema | {"additionalProperties": False}))
    assert json.loads(user.ask('{"age": 7}')) == {"age": 7}
    assert user.page.locator(".note.good").inner_text() == "✓ Follows the schema."
    user.page.fill("#set-max_tokens", "3")
    user.ask('{"age": 7}')
    assert "Is no JSON: it was cut off." in user.page.locator(".note.error").inner_text()


CHECKS = [
    (
        {"pattern": r"^\d{3}\-\d{4}$"},
        "555-0100",
        {"faults": [], "unchecked": [r"pattern ^\d{3}\-\d{4}$"]},
    ),
    ({"multipleOf": 0.01}, 0.07, {"faults": [], "unchecked": []}),
    ({"multipleOf": 0.01}, 0.075, {"faults": ["$: must be a multiple of 0.01"], "unchecked": []}),
]


def test_values_are_checked_against_schemas(user: User) -> None:
    script = """async pair =>
      (await import("/playground/modules/schema_check.js")).checkAgainst(...pair)"""
    for schema, value, found in CHECKS:
        assert user.page.evaluate(script, [schema, value]) == found


def test_tokens_have_probabilities_by_pointer_and_keys(user: User) -> None:
    user.open_settings()
    user.page.check("#set-showsTokens")
    user.ask("abc")
    user.click("Tokens")
    user.page.locator(".token").nth(1).hover()
    expect(user.page.locator(".token-card strong")).to_contain_text("b ")
    user.page.locator(".tokens").focus()
    user.page.keyboard.press("ArrowRight")
    expect(user.page.locator(".token-card strong")).to_contain_text("c ")
    answer = user.message(1)
    user.ask("def")
    assert answer.get_by_role("button", name="Tokens").get_attribute("aria-pressed") == "true"
    user.click("Tokens", answer)
    assert answer.locator(".content").inner_text().strip() == "abc"


def test_the_tokenizer_shows_a_text_as_tokens(user: User) -> None:
    user.page.click("#open-tokenizer")
    user.page.fill("#tokenizer-text", "a b")
    expect(user.page.locator("dialog .token")).to_have_text(["a", "·", "b"])
    assert "3 tokens of 3 characters" in user.page.locator("dialog").inner_text()


CALCULATIONS = [
    ("1 + 2 * 3", 7),
    ("-(2 ** 3) ** 2", -64),
    ("2 ^ 3 ^ 2", 512),
    ("10 % 4 / 2", 1),
    ("sqrt(16) + abs(-2)", 6),
    ("17 plus 25", 42),
    ("3 x 4", 12),
    ("10x10", 100),
    ("1e3 - .5", 999.5),
]


def test_the_calculator_computes(user: User) -> None:
    script = """async texts => {
      const { calculate } = await import('/playground/modules/tools/calculator.js');
      return texts.map(calculate);
    }"""
    expressions, values = zip(*CALCULATIONS, strict=True)
    assert user.page.evaluate(script, expressions) == pytest.approx(values)


WRONG = ["", "1 +", "(1", "1)", "alert(1)", "constructor", "1 / 0", "2 3", "x" * 600, "$", "0x10"]


def test_the_calculator_names_an_error(user: User) -> None:
    script = """async texts => {
      const { calculate } = await import('/playground/modules/tools/calculator.js');
      return texts.filter(text => {
        try { calculate(text); } catch (error) { return error.constructor !== Error; }
        return true;
      });
    }"""
    assert user.page.evaluate(script, WRONG) == []
