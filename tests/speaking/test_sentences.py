"""Tests that texts are divided at the ends of sentences, and pieces at pauses."""

import pytest

from ouzel.speaking.pieces import Break, Marks, PieceMaker
from ouzel.speaking.sentences import MAX_CHARS, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("Dr. Smith met Mr. J. Jones at 5 p.m. today.", None),
        ("It costs 3.14 dollars, e.g. here.", None),
        ('He said "Stop!" and left.', None),
        ('She said "Go." Then she left.', ['She said "Go."', "Then she left."]),
        ("It was I. Then it rained.", ["It was I.", "Then it rained."]),
        ("Wait... what?", None),
        ("यह एक है। यह दो है।", ["यह एक है।", "यह दो है।"]),
        ("A heading\n\nA text.", ["A heading", "A text."]),
        ("a wrapped\nline of text.", ["a wrapped line of text."]),
        ("- one\n- two", ["- one", "- two"]),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str] | None) -> None:
    assert [each.text for each in split_sentences(text)] == (
        [text] if sentences is None else sentences
    )


def test_a_line_ends_with_its_last_sentence() -> None:
    ends = [each.ends_line for each in split_sentences("One. Two.\nThree.")]
    assert ends == [False, True, True]


@pytest.mark.parametrize("unit", ["word ", "clause, ", "x", "日"])
def test_long_sentences_are_cut_and_nothing_is_lost(unit: str) -> None:
    text = unit * 1000
    parts = list(split_sentences(text))
    assert all(0 < len(each.text) <= MAX_CHARS for each in parts)
    assert "".join(each.text for each in parts).replace(" ", "") == text.replace(" ", "")
    assert [each.ends_sentence for each in parts] == [False] * (len(parts) - 1) + [True]


COMMA, STOP, SPACE = 3, 4, 16
MARKS = Marks(
    frozenset({COMMA}), frozenset({STOP}), frozenset({SPACE}), frozenset({COMMA, STOP, SPACE})
)


def make_pieces(
    *sentences: tuple[int, ...], following: Break = Break.SENTENCE, max_len: int = 510
) -> list[tuple[int, Break]]:
    maker = PieceMaker(MARKS, max_len)
    pieces = [piece for each in sentences for piece in maker.add(each, following)]
    return [(len(each.token_ids), each.following) for each in [*pieces, *maker.finish()]]


def test_the_first_piece_is_short_and_later_ones_are_joined() -> None:
    sentence = (50,) * 39 + (STOP,)
    assert make_pieces(*[sentence] * 6) == [
        (40, Break.SENTENCE),
        (81, Break.SENTENCE),
        (81, Break.SENTENCE),
        (40, Break.SENTENCE),
    ]


def test_a_long_first_sentence_is_cut_at_a_clause() -> None:
    sentence = (50,) * 60 + (COMMA, SPACE) + (50,) * 100 + (STOP,)
    assert make_pieces(sentence) == [(61, Break.CLAUSE), (101, Break.SENTENCE)]


def test_a_first_clause_that_is_long_is_cut_at_its_end() -> None:
    sentence = (50,) * 110 + (COMMA, SPACE) + (50,) * 80 + (COMMA, SPACE) + (50,) * 40 + (STOP,)
    assert make_pieces(sentence) == [(111, Break.CLAUSE), (123, Break.SENTENCE)]
    clause = (50,) * 110 + (STOP,)
    assert make_pieces(clause, following=Break.LINE) == [(111, Break.LINE)]


def test_very_short_sentences_are_joined_at_the_begin_too() -> None:
    assert make_pieces((50, STOP), (50,) * 30) == [(33, Break.SENTENCE)]


def test_a_line_break_ends_a_piece() -> None:
    assert (
        make_pieces((50,) * 30, (51,) * 30, (52,) * 30, following=Break.LINE)
        == [(30, Break.LINE)] * 3
    )


@pytest.mark.parametrize("space_every", [7, 10_000])
def test_no_piece_is_longer_than_the_model_allows(space_every: int) -> None:
    sentence = tuple(SPACE if index % space_every == 6 else 50 for index in range(1000))
    pieces = make_pieces(sentence, max_len=100)
    assert all(0 < length <= 100 for length, _ in pieces)
    num_spoken = sum(1 for each in sentence if each != SPACE)
    assert sum(length for length, _ in pieces) >= num_spoken
    assert {each for _, each in pieces[:-1]} == {Break.CUT}


def test_marks_alone_are_not_spoken() -> None:
    assert make_pieces((STOP, COMMA, SPACE), ()) == []


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_tiny_limit_of_the_model_loses_nothing(limit: int) -> None:
    pieces = make_pieces((50,) * 7, max_len=limit)
    assert sum(length for length, _ in pieces) == 7
    assert all(0 < length <= limit for length, _ in pieces)


@pytest.mark.parametrize("run", [" ", "\t", ".", "!", "…", "'", ".'", "。", "\n"])
def test_a_run_of_marks_or_spaces_is_read_once(run: str) -> None:
    """A pattern that reads it again from each of its characters would not end."""
    text = f"a{run * (300_000 // len(run))}b"
    letters = "".join(each.text for each in split_sentences(text)).replace(run, "")
    assert letters.strip("' ") == "ab"
