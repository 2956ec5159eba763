"""Marks of Markdown, emoji and control characters are not read aloud."""

import pytest

from ouzel.phonemes.plain_text import make_plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Bold**, _italic_ and ~~gone~~", "Bold, italic and gone"),
        ("# Title\n\nText", "Title. Text"),
        ("- one\n* two\n> three", "one. two three"),
        ("see [the docs](https://example.com/a_b) now", "see the docs now"),
        ("```python\ncode\n```", "code"),
        ("snake_case and 5 * 3", "snake_case and 5 * 3"),
        ("Wow 😀🏽 ok ❤️", "Wow ok"),
        ("it’s “so”", "it's “so”"),
        ("a\x00b\u200bc\u202ed\r\n", "a bcd"),
        ("½ cup, ５ and ٣", "1/2 cup, 5 and 3"),
        ("ﬁne cafe\u0301", "fine café"),
        ("\ud800", ""),
        ("5 m² at 20 °C…", "5 m² at 20 °C…"),
    ],
)
def test_a_text_becomes_plain(text: str, expected: str) -> None:
    assert make_plain(text) == expected
