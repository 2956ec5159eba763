"""Answers are read aloud, by a real server whose voice model hums a tone for each word."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.api.serving import RunningServer
from tests.api.speaking.humming import MAX_CHARACTERS, VOICES, WORD_S, Hummer
from tests.api.speaking.humming import MODEL as HUMMING
from tests.playground.chromium import User
from tests.playground.reading import READ, STOP, reading_server

release = pytest.mark.release("the playground: more of reading aloud")

# Notes each sound that the page plays, and whether it has been heard to its end.
LISTEN = """(() => {
  window.sounds = [];
  window.contexts = [];
  const { start } = AudioBufferSourceNode.prototype;
  AudioBufferSourceNode.prototype.start = function (at_s) {
    const samples = this.buffer.getChannelData(0);
    const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    const sound = { at_s, duration_s: this.buffer.duration, peak, isHeard: false };
    this.addEventListener("ended", () => (sound.isHeard = this.context.currentTime > at_s));
    sounds.push(sound);
    start.call(this, at_s);
  };
  window.AudioContext = class extends AudioContext {
    constructor(options) {
      super(options);
      contexts.push(this);
    }
  };
})()"""
GONE = {"id": "af_gone", "name": "af_gone"}
FIRST_IS_HEARD = "sounds.length > 0 && sounds[0].isHeard"
IS_SILENT = "contexts.length > 0 && contexts.every(({ state }) => state === 'closed')"


@pytest.fixture
def hummer_and_url() -> Iterator[tuple[Hummer, str]]:
    with reading_server() as reading:
        yield reading.hummer, reading.url


@pytest.fixture
def hummer(hummer_and_url: tuple[Hummer, str]) -> Hummer:
    return hummer_and_url[0]


@pytest.fixture
def user(page: Page, hummer_and_url: tuple[Hummer, str]) -> User:
    page.add_init_script(LISTEN)
    user = User(page, hummer_and_url[1])
    user.open()
    return user


def begin_reading(user: User, hummer: Hummer, number: int = 1) -> None:
    """Presses the button of the last answer, whose second sentence waits."""
    user.click(READ)
    while hummer.num_waiting < number:
        user.page.wait_for_timeout(20)


def wait_for_aborts(user: User, hummer: Hummer, number: int = 1) -> None:
    while hummer.num_aborted < number:
        user.page.wait_for_timeout(20)
    assert hummer.num_aborted == number


def test_an_answer_is_heard_from_its_first_sentence_on(user: User, hummer: Hummer) -> None:
    user.ask("*a*\n\n**b**. wait. c.\n\n```\nx = 1\n```")
    begin_reading(user, hummer)
    assert hummer.options[0].text == "a\n\nb. wait. c."
    assert hummer.options[0].voice == "af_bella"  # the voice of requests that name none
    user.wait_until(FIRST_IS_HEARD)  # while the server makes the rest
    assert hummer.num_running == 1
    hummer.may_go_on.set()
    expect(user.find_button(READ)).to_be_visible()
    user.wait_until(IS_SILENT)
    sounds = user.page.evaluate("sounds")
    assert all(sound["isHeard"] and sound["peak"] > 0.1 for sound in sounds)
    assert sum(sound["duration_s"] for sound in sounds) == pytest.approx(3 * WORD_S, abs=0.01)
    for before, after in pairwise(sounds):
        assert after["at_s"] >= before["at_s"] + before["duration_s"] - 1e-6
    assert hummer.num_aborted == 0


def test_a_reading_is_stopped_by_the_same_button(user: User, hummer: Hummer) -> None:
    user.ask("a. wait.")
    begin_reading(user, hummer)
    expect(user.find_button(STOP)).to_be_focused()
    user.page.keyboard.press("Enter")
    wait_for_aborts(user, hummer)
    user.wait_until(IS_SILENT)
    expect(user.find_button(READ)).to_be_focused()
    expect(user.page.locator("#notice")).to_be_empty()


def test_another_reading_stops_the_first(user: User, hummer: Hummer) -> None:
    user.ask("a. wait.")
    user.ask("b. wait.")
    begin_reading(user, hummer)
    user.click(READ, user.message(1))
    wait_for_aborts(user, hummer)
    while hummer.num_waiting < 2:
        user.page.wait_for_timeout(20)
    assert [options.text for options in hummer.options] == ["b. wait.", "a. wait."]
    expect(user.find_button(READ)).to_be_visible()
    user.click(STOP, user.message(1))
    wait_for_aborts(user, hummer, 2)


@pytest.mark.parametrize("way", ["#new", "#open-compare", "a[href='#/completion']"])
def test_leaving_the_conversation_stops_the_reading(user: User, hummer: Hummer, way: str) -> None:
    user.ask("a. wait.")
    begin_reading(user, hummer)
    user.page.click(way)
    wait_for_aborts(user, hummer)
    user.wait_until(IS_SILENT)


def test_a_voice_is_chosen_in_the_settings(user: User, hummer: Hummer) -> None:
    page = user.page
    user.open_settings()
    expect(page.locator("#set-voice option")).to_have_text(["As the model does", *VOICES])
    user.choose("#set-voice", "bf_emma")
    user.ask("a.")
    user.click(READ)
    user.wait_until(IS_SILENT)
    assert [options.voice for options in hummer.options] == ["bf_emma"]
    user.reload()
    user.open_settings()
    expect(page.locator("#set-voice")).to_have_value("bf_emma")


@release
def test_a_voice_that_the_model_has_lost_is_named(user: User, hummer: Hummer) -> None:
    page = user.page
    page.route("**/v1/audio/voices?**", lambda route: route.fulfill(json={"voices": [GONE]}))
    user.open_settings()
    user.choose("#set-voice", GONE["id"])
    page.unroute("**/v1/audio/voices?**")
    user.reload()
    user.open_settings()
    expect(page.locator("#set-voice")).to_have_value(GONE["id"])
    user.ask("a.")
    user.click(READ)
    expect(page.locator("#notice")).to_contain_text(f"voice must be a voice, given '{GONE['id']}'")
    assert hummer.options == []


@release
def test_another_branch_stops_the_reading(user: User, hummer: Hummer) -> None:
    user.ask("a. wait.")
    begin_reading(user, hummer)
    user.click("Regenerate")
    wait_for_aborts(user, hummer)
    user.wait_for_answer()
    expect(user.find_button(READ)).to_be_visible()


@release
def test_a_message_that_is_drawn_again_keeps_its_reading(user: User, hummer: Hummer) -> None:
    user.ask("a. wait.")
    begin_reading(user, hummer)
    user.click("Edit")
    user.click("Cancel")
    expect(user.find_button(STOP)).to_be_visible()
    hummer.may_go_on.set()
    expect(user.find_button(READ)).to_be_visible()
    assert hummer.num_aborted == 0


def test_a_refusal_names_the_field(user: User, hummer: Hummer) -> None:
    user.ask("a " * MAX_CHARACTERS)
    user.click(READ)
    expect(user.page.locator("#notice")).to_contain_text(
        f"input must have <= {MAX_CHARACTERS} characters"
    )
    expect(user.find_button(READ)).to_be_visible()
    user.wait_until(IS_SILENT)
    assert hummer.options == []


@release
def test_a_fault_behind_the_first_sentence_is_told(user: User, hummer: Hummer) -> None:
    user.ask("a. fail.")
    user.click(READ)
    expect(user.page.locator("#notice")).to_contain_text("broke off")
    expect(user.find_button(READ)).to_be_visible()
    user.wait_until(IS_SILENT)


@release
def test_an_answer_without_words_is_not_sent(user: User, hummer: Hummer) -> None:
    user.ask("```\ncode\n```")
    user.click(READ)
    expect(user.page.locator("#notice")).to_contain_text("no text that can be read aloud")
    expect(user.find_button(READ)).to_be_visible()
    assert hummer.options == []


def test_without_a_voice_model_there_is_no_button(page: Page, parrot: RunningServer) -> None:
    user = User(page, parrot.url)
    user.open()
    user.ask("a.")
    expect(user.find_button("Copy")).to_be_visible()
    assert user.find_button(READ).count() == 0


def test_the_page_names_the_purpose_of_a_voice_model(user: User) -> None:
    user.choose_model(HUMMING)
    expect(user.page.locator("#no-chat")).to_contain_text("reads texts aloud and does not chat")


SPOKEN = {
    "One *two* `three`\nfour": "One two three four",
    "# Title\n\n- one\n- [x] two\n  - three": "Title\n\none\n\ntwo\n\nthree",
    "> quoted\n\n---\n\n~~gone~~": "quoted\n\ngone",
    "| a | b |\n|--|--|\n| 1 | |\n| 2 | **3** |": "a, b\n\n1\n\n2, 3",
    "Before:\n\n```python\nx = 1\n```\n\nAfter.": "Before:\n\nAfter.",
    "See [the page](https://example.org), ![a cat](https://example.org/cat.png).": (
        "See the page, a cat."
    ),
    "It is $x = 2$, not $\\frac{a}{b}$.\n\n$$\n\\sum_i x_i\n$$": "It is x = 2, not.",
    "Known[^1].\n\n[^1]: By a note.": "Known.",
    "\N{EM DASH}": "",
}


@release
def test_the_marks_of_a_text_are_not_spoken(user: User) -> None:
    script = """async (text) => {
      const { renderMarkdown } = await import("/playground/modules/markdown/view.js");
      const { spokenText } = await import("/playground/modules/speech/spoken_text.js");
      const prose = document.createElement("div");
      renderMarkdown(text, prose);
      return spokenText(prose);
    }"""
    found = {text: user.page.evaluate(script, text) for text in SPOKEN}
    assert found == SPOKEN
