"""Spellings are found in texts, for any number of spellings, also alike ones."""

import pytest

from ouzel.prompts.spellings import Spellings


@pytest.mark.parametrize(
    ("texts", "text", "found"),
    [
        (["<a>", "<a><b>", "<b>"], "<a><b><b>", ["<a><b>", "<b>"]),
        (["<a", "<ab"], "<a<ab<abc", ["<a", "<ab", "<ab"]),
        (["[x]", "<.>"], "[x]<a>.<.>", ["[x]", "<.>"]),
        (
            [f"<{'a' * length}>" for length in range(1, 600)],
            f"<{'a' * 599}><aaa><>",
            [f"<{'a' * 599}>", "<aaa>"],
        ),
        (["<" * length for length in range(2, 600)], "<" * 700, ["<" * 599, "<" * 101]),
    ],
)
def test_the_longest_is_found(texts: list[str], text: str, found: list[str]) -> None:
    assert [text[slice(*span)] for span in Spellings(texts).spans(text)] == found


def test_the_begin_or_end_of_a_spelling_is_found_at_the_borders() -> None:
    spellings = Spellings(["<|end|>", "<|user|>", "<|", "x" * 10**6 + ">"])
    assert spellings.len_of_begun("a<|us") == 4
    assert spellings.len_of_begun("<|end|>") == 0
    assert spellings.len_of_ended("nd|>b") == 4
    assert (spellings.len_of_begun("x"), spellings.len_of_ended("x>")) == (0, 2)
