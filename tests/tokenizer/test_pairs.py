"""Texts and pairs get their special tokens, and are cut as transformers cuts them."""

from pathlib import Path

import pytest

from ouzel.tokenizer.huggingface import load_tokenizer, shorten

GOLDEN = Path(__file__).parents[1] / "backends" / "golden_sentences"


def test_a_bert_pair_has_a_second_segment() -> None:
    tokenizer = load_tokenizer(GOLDEN / "cross-bert")
    token_ids, second_begin = tokenizer.encode_pair("the cat", "snow", max_tokens=None)
    words = [tokenizer.token_text(token_id) for token_id in token_ids]
    assert words == ["[CLS]", "the", "cat", "[SEP]", "snow", "[SEP]"]
    assert second_begin == 4
    assert tokenizer.encode_pair("the cat", None, max_tokens=None) == ([*token_ids[:4]], 4)


def test_a_pair_without_segments_is_one_text() -> None:
    tokenizer = load_tokenizer(GOLDEN / "cross-xlm-roberta")
    token_ids, second_begin = tokenizer.encode_pair("the cat", "snow", max_tokens=None)
    assert second_begin == len(token_ids)
    assert [tokenizer.token_text(token_id) for token_id in token_ids].count("</s>") == 3


def test_special_tokens_stay_when_texts_are_cut() -> None:
    tokenizer = load_tokenizer(GOLDEN / "cross-bert")
    token_ids, _ = tokenizer.encode_pair("the cat sat", "snow snow snow snow", max_tokens=7)
    words = [tokenizer.token_text(token_id) for token_id in token_ids]
    assert words == ["[CLS]", "the", "cat", "[SEP]", "snow", "snow", "[SEP]"]
    assert len(tokenizer.encode_pair("the cat sat on the mat", None, max_tokens=4)[0]) == 4


@pytest.mark.parametrize(
    ("lens", "room", "expected"),
    [
        ([3, 4], 10, [3, 4]),
        ([3, 9], 8, [3, 5]),
        ([9, 3], 8, [5, 3]),
        ([9, 9], 7, [3, 4]),
        ([9, 8], 7, [4, 3]),
        ([9], 4, [4]),
        ([3], -2, [0]),
    ],
)
def test_the_longer_text_is_cut_first(lens: list[int], room: int, expected: list[int]) -> None:
    assert shorten(lens, room) == expected


def test_the_start_is_cut_where_the_end_is_to_stay() -> None:
    tokenizer = load_tokenizer(GOLDEN / "cross-bert")
    whole, _ = tokenizer.encode_pair("the cat sat on the mat", None, max_tokens=None)
    cut, _ = tokenizer.encode_pair("the cat sat on the mat", None, max_tokens=4, keeps_end=True)
    assert cut == [whole[0], *whole[-3:]]


@pytest.mark.parametrize(
    ("max_tokens", "max_second", "num_kept"), [(None, 2, 2), (7, 9, 1), (5, 9, 1), (20, 9, 4)]
)
def test_only_the_second_text_is_cut_where_it_has_a_limit(
    max_tokens: int | None, max_second: int, num_kept: int
) -> None:
    tokenizer = load_tokenizer(GOLDEN / "cross-bert")
    token_ids, _ = tokenizer.encode_pair(
        "the cat sat", "snow snow snow snow", max_tokens=max_tokens, max_second_tokens=max_second
    )
    words = [tokenizer.token_text(token_id) for token_id in token_ids]
    assert words == ["[CLS]", "the", "cat", "sat", "[SEP]", *["snow"] * num_kept, "[SEP]"]
