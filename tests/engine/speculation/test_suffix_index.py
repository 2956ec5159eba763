from random import Random

import pytest

from ouzel.engine.speculation.rules.suffix_index import MAX_MATCH, SuffixIndex


def find_longest_by_scan(
    text: list[int], end: list[int], max_length: int
) -> tuple[int, int] | None:
    """Returns length and place of the longest match by a full scan; the last of equal ones."""
    best = None
    for place in range(1, len(text)):
        length = 0
        while (
            length < min(max_length, place, len(end))
            and text[place - 1 - length] == end[-1 - length]
        ):
            length += 1
        if length and (best is None or length >= best[0]):
            best = (length, place)
    return best


@pytest.mark.parametrize("max_length", [1, 2, 3, MAX_MATCH])
@pytest.mark.parametrize("vocab_size", [5, 12, 100])
def test_the_longest_match_equals_a_scans(vocab_size: int, max_length: int) -> None:
    """The texts are so short that no chain exceeds the index's limit."""
    random = Random(vocab_size)
    text, index = list[int](), SuffixIndex()
    for _ in range(60):
        text.append(random.randrange(vocab_size))
        index.follow(text)
        match = index.longest(text, text, max_length)
        expected = find_longest_by_scan(text, text, max_length)
        assert (match and (match.length, match.place)) == expected


def test_another_text_is_searched_as_well() -> None:
    text, index = [1, 2, 3, 4, 5, 2, 3, 6], SuffixIndex()
    index.follow(text)
    match = index.longest(text, [9, 1, 2, 3])
    assert match is not None
    assert text[match.place :] == [4, 5, 2, 3, 6]
    assert match.length == 3
    assert index.longest(text, [6]) is None  # no token follows 6
    assert index.longest(text, []) is None


def test_a_text_is_followed_as_it_grows() -> None:
    whole, grown = SuffixIndex(), SuffixIndex()
    random = Random(0)
    text = [random.randrange(4) for _ in range(200)]
    whole.follow(text)
    for end in range(0, 201, 7):
        grown.follow(text[:end])
    grown.follow(text)
    assert grown.longest(text, text) == whole.longest(text, text)
