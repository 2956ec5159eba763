"""Tool calls, structured output and tokens in the playground."""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import Person

PersonAt = Callable[[RunningServer], Person]
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


def test_built_in_tools_answer_by_themselves(person: Person) -> None:
    person.opens_settings()
    person.page.check("#tool-calculator")
    person.asks(call("calculator", expression="2 * (3 + 4) ** 2"))
    expect(person.page.locator(".message.tool .content")).to_have_text("98")
    person.waits()
    assert [each for each in person.said if "98" in each]


def test_a_built_in_tool_can_be_run_by_hand(person: Person) -> None:
    person.opens_settings()
    person.page.check("#tool-clock")
    person.page.uncheck("#set-runsBuiltinTools")
    person.asks(call("clock", time_zone="UTC"))
    person.clicks("Run")
    assert "UTC" in person.page.locator(".tool-result-form textarea").input_value()
    person.clicks("Use this result")
    person.waits()
    assert "UTC" in person.page.locator(".message.tool .content").inner_text()


def test_results_of_ones_own_tools_are_typed_for_each_call(person: Person) -> None:
    person.opens_settings()
    person.page.fill(
        "#set-tools", '[{"name": "weather"}, {"type": "function", "function": {"name": "news"}}]'
    )
    person.asks(call("weather", city="Ulm") + call("news"))
    assert person.page.locator(".tool-name").all_inner_texts() == ["Calls weather", "Calls news"]
    first, second = (
        person.page.locator(".tool-call").nth(0),
        person.page.locator(".tool-call").nth(1),
    )
    first.locator("textarea").fill("rain")
    second.locator("textarea").fill("none")
    person.clicks("Use this result", first)
    expect(second.locator("textarea")).to_be_focused()
    person.clicks("Use this result", second)
    person.waits()
    results = person.page.locator(".message.tool .content")
    assert results.all_inner_texts() == ["rain", "none"]
    assert "none" in person.answer
    person.clicks("Edit", person.message(2))
    person.page.fill(".editor", "sun")
    person.clicks("Send as another branch", person.message(2))
    person.waits()
    assert results.all_inner_texts() == ["sun", "none"]


def test_tools_that_are_none_are_named(person: Person) -> None:
    person.opens_settings()
    for text, fault in WRONG_TOOLS.items():
        person.page.fill("#set-tools", text)
        assert person.page.locator('.fault[data-of="Tools"]').inner_text().startswith(fault), text
        person.page.fill("#set-tools", "")
        expect(person.page.locator('.fault[data-of="Tools"]')).to_be_empty()


def test_an_answer_by_a_schema_is_checked(guided: RunningServer, person_at: PersonAt) -> None:
    person = person_at(guided)
    person.opens_settings()
    person.page.check("#set-hasSchema")
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    person.page.fill("#set-schema", json.dumps(schema | {"additionalProperties": False}))
    assert json.loads(person.asks('{"age": 7}')) == {"age": 7}
    assert person.page.locator(".note.good").inner_text() == "✓ Obeys the schema."
    person.page.fill("#set-max_tokens", "3")
    person.asks('{"age": 7}')
    assert "Is no JSON: it was cut off." in person.page.locator(".note.error").inner_text()


CHECKS = [
    (
        {"pattern": r"^\d{3}\-\d{4}$"},
        "555-0100",
        {"faults": [], "unchecked": [r"pattern ^\d{3}\-\d{4}$"]},
    ),
    ({"multipleOf": 0.01}, 0.07, {"faults": [], "unchecked": []}),
    ({"multipleOf": 0.01}, 0.075, {"faults": ["$: must be a multiple of 0.01"], "unchecked": []}),
]


def test_values_are_held_against_schemas(person: Person) -> None:
    script = "async given => (await import('/playground/modules/schema_check.js')).checkAgainst(...given)"
    for schema, value, found in CHECKS:
        assert person.page.evaluate(script, [schema, value]) == found


def test_tokens_have_probabilities_by_pointer_and_keys(person: Person) -> None:
    person.opens_settings()
    person.page.check("#set-showsTokens")
    person.asks("abc")
    person.clicks("Tokens")
    person.page.locator(".token").nth(1).hover()
    expect(person.page.locator(".token-card strong")).to_contain_text("b ")
    person.page.locator(".tokens").focus()
    person.page.keyboard.press("ArrowRight")
    expect(person.page.locator(".token-card strong")).to_contain_text("c ")
    answer = person.message(1)
    person.asks("def")
    assert answer.get_by_role("button", name="Tokens").get_attribute("aria-pressed") == "true"
    person.clicks("Tokens", answer)
    assert answer.locator(".content").inner_text().strip() == "abc"


def test_the_tokenizer_shows_a_text_as_tokens(person: Person) -> None:
    person.page.click("#open-tokenizer")
    person.page.fill("#tokenizer-text", "a b")
    expect(person.page.locator("dialog .token")).to_have_text(["a", "·", "b"])
    assert "3 tokens of 3 characters" in person.page.locator("dialog").inner_text()


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


def test_the_calculator_computes(person: Person) -> None:
    script = """async texts => {
      const { calculate } = await import('/playground/modules/tools/calculator.js');
      return texts.map(calculate);
    }"""
    expressions, values = zip(*CALCULATIONS, strict=True)
    assert person.page.evaluate(script, expressions) == pytest.approx(values)


WRONG = ["", "1 +", "(1", "1)", "alert(1)", "constructor", "1 / 0", "2 3", "x" * 600, "$", "0x10"]


def test_the_calculator_says_what_is_wrong(person: Person) -> None:
    script = """async texts => {
      const { calculate } = await import('/playground/modules/tools/calculator.js');
      return texts.filter(text => {
        try { calculate(text); } catch (error) { return error.constructor !== Error; }
        return true;
      });
    }"""
    assert person.page.evaluate(script, WRONG) == []
