import json
import unicodedata

import pytest

from ouzel.terminal.harmless import harmless, harmless_json, harmless_line, whole_characters

EVERYTHING = "".join(map(chr, [*range(0x300), *range(0x2000, 0x2100), 0xDC9B, 0xFEFF, 0x1F600]))


@pytest.mark.parametrize("shown", [harmless(EVERYTHING), harmless_line(EVERYTHING)])
def test_nothing_that_a_terminal_obeys_is_left(shown: str) -> None:
    controls = {char for char in shown if unicodedata.category(char) in ("Cc", "Cs")}
    assert controls <= {"\n", "\t"}
    assert not controls & set(harmless_line(EVERYTHING))


def test_sequences_are_shown_instead() -> None:
    assert (
        harmless("\x1b]0;title\x07 \x9b31m \x7f\r\nnext\ttab") == "␛]0;title␇ \\x9b31m ␡\nnext\ttab"
    )
    assert harmless("a\u202eb") == "a\\u202eb"
    assert harmless_line("two\nlines") == "two␊lines"


def test_ordinary_text_is_as_it_was() -> None:
    text = "Grüße, 日本語, עברית, 👩‍🚀, x²"
    assert harmless(text) == text


def test_json_is_the_same_value() -> None:
    value = {"text": "\x1b\x9b\x7f\u202e\n é"}
    shown = harmless_json(json.dumps(value, ensure_ascii=False).encode())
    assert json.loads(shown) == value
    assert not {"\x9b", "\x7f", "\u202e", "\x1b"} & set(shown)


def test_halves_of_characters_are_replaced() -> None:
    assert whole_characters("a\udc9bé") == "a?é"
