import random

import pytest

from ouzel.parsers.json_string import StringDecoding, decoded_string

STRINGS = {
    '"plain"': "plain",
    '""': "",
    '"a\\"b\\\\c\\/d"': 'a"b\\c/d',
    '"\\n\\t\\u00e9\\u4e2D"': "\n\té中",
    '"\\ud83d\\ude00 \\uD83D\\uDE00"': "😀 😀",
    '"a\nb"': "a\nb",
    '"\\\\u00e9"': "\\u00e9",
}
BROKEN = {
    '"\\x41"': "\\x41",
    '"\\u12g4 x"': "\\u12g4 x",
    '"\\ud83d x"': "\\ud83d x",
    '"\\ud83d\\u0041"': "\\ud83dA",
    '"\\ude00"': "\\ude00",
}


def decoded(pieces: list[str]) -> str:
    given: list[str] = []
    decoding = StringDecoding(given.append)
    for piece in pieces:
        decoding.feed(piece)
    return "".join(given)


@pytest.mark.parametrize(("text", "expected"), STRINGS.items())
def test_a_whole_string(text: str, expected: str) -> None:
    assert decoded_string(text) == expected


@pytest.mark.parametrize("text", [*BROKEN, '"open', "1", ""])
def test_malformed_strings_have_no_text(text: str) -> None:
    assert decoded_string(text) is None


@pytest.mark.parametrize(("text", "expected"), (STRINGS | BROKEN).items())
def test_piece_by_piece(text: str, expected: str) -> None:
    assert decoded([text]) == decoded(list(text)) == expected
    cut = random.Random(text).randrange(len(text))
    assert decoded([text[:cut], text[cut:]]) == expected


@pytest.mark.parametrize("text", STRINGS)
def test_a_cut_string_gives_its_beginning(text: str) -> None:
    assert all(decoded([text]).startswith(decoded([text[:end]])) for end in range(len(text)))
