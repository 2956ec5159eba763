"""A text is divided into clauses and marks, and joined again."""

import pytest

from ouzel.phonemes.clauses import MAX_CLAUSE_CHARS, Piece, divide_clauses, join_pieces


def test_marks_are_pieces_but_not_within_numbers() -> None:
    pieces = divide_clauses("Hola, son 3,14 a las 10:30. (¿Sí?)")
    assert [piece.text for piece in pieces] == [
        *("Hola", ",", "son 3,14 a las 10:30", ".", "(", "Sí", "?", ")"),
    ]
    assert [piece.text for piece in pieces if piece.is_mark] == [",", ".", "(", "?", ")"]


def test_a_long_clause_is_divided_between_words() -> None:
    pieces = divide_clauses("palabra " * 100 + "x" * 700)
    assert all(len(piece.text) <= MAX_CLAUSE_CHARS for piece in pieces)
    assert "".join(piece.text for piece in pieces).replace(" ", "") == "palabra" * 100 + "x" * 700


def test_vowel_signs_stay_with_their_letters() -> None:
    assert [piece.text for piece in divide_clauses("नमस्ते दुनिया")] == ["नमस्ते दुनिया"]


@pytest.mark.parametrize("text", ["", "-", "' - '", "^ *", "«»"])
def test_a_text_without_words_has_no_clause(text: str) -> None:
    assert divide_clauses(text) == []


def test_marks_stand_at_the_words_they_belong_to() -> None:
    texts = ['"', "a", ",", "b", '"', "(", "c", ")", ".", "“", "d", "”", "—", "e"]
    pieces = [Piece(text, is_mark=not text.isalpha()) for text in texts]
    assert join_pieces(pieces) == '"a, b" (c). “d”— e'
