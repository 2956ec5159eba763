"""Keys of token ids are exact: two keys are equal only if all tokens up to them are."""

import random

import pytest

from ouzel.routing import RequestKeys, make_token_keys
from ouzel.routing.keys import PIECES_PER_LENGTH, cut_pieces, find_end, find_length

RNG = random.Random(1)
TOKEN_IDS = [RNG.randrange(150_000) for _ in range(20_000)]


def count_common(one: RequestKeys, other: RequestKeys) -> int:
    places = zip(one.blocks, other.blocks, strict=False)
    return next(
        (place for place, (a, b) in enumerate(places) if a != b),
        min(len(one.blocks), len(other.blocks)),
    )


def test_the_keys_of_a_beginning_are_the_beginning_of_the_keys() -> None:
    whole = make_token_keys(TOKEN_IDS, block_size=16)
    for length in range(0, 20_000, 613):
        part = make_token_keys(TOKEN_IDS[:length], block_size=16)
        assert part.blocks == whole.blocks[: len(part.blocks)]
        assert length - part.num_tokens_in(len(part.blocks)) < find_length(len(part.blocks), 16)


@pytest.mark.parametrize("place", [0, 15, 16, 1023, 1024, 1055, 7_000, 19_000])
def test_two_prompts_have_the_keys_in_common_that_end_before_they_differ(place: int) -> None:
    changed = [*TOKEN_IDS[:place], 150_000, *TOKEN_IDS[place + 1 :]]
    ours = make_token_keys(TOKEN_IDS, block_size=16)
    theirs = make_token_keys(changed, block_size=16)

    common = count_common(ours, theirs)
    assert find_end(common, 16) <= place < find_end(common + 1, 16)
    assert not set(ours.blocks[common:]) & set(theirs.blocks[common:])


def test_other_salts_share_nothing() -> None:
    ours, theirs = (
        make_token_keys(TOKEN_IDS[:100], salt=salt, block_size=16) for salt in ("", "adapter")
    )

    assert count_common(ours, theirs) == 0
    assert ours.session != theirs.session


def test_equal_tokens_that_stand_for_other_pictures_differ_from_there_on() -> None:
    tokens = [7] * 400
    ours, theirs, none = (
        make_token_keys(tokens, block_size=16, pictures=pictures)
        for pictures in (
            [(40, b"A" * 16), (200, b"B" * 16)],
            [(40, b"A" * 16), (200, b"C" * 16)],
            [],
        )
    )

    assert count_common(ours, theirs) == 200 // 16
    assert count_common(ours, none) == 40 // 16


@pytest.mark.parametrize("length", [0, 10, 16, 500, 1024, 5_000])
def test_output_is_added_to_known_keys_as_if_all_were_made_anew(length: int) -> None:
    pictures = [(30, b"A" * 16), (4_000, b"B" * 16)]
    known = make_token_keys(
        TOKEN_IDS[:length], block_size=16, salt="s", pictures=pictures, session=b"s"
    )

    made = make_token_keys(
        TOKEN_IDS[:9_000], block_size=16, salt="s", pictures=pictures, known=known
    )

    assert made == make_token_keys(
        TOKEN_IDS[:9_000], block_size=16, salt="s", pictures=pictures, session=b"s"
    )


def test_sessions_without_a_name_are_known_by_their_first_tokens() -> None:
    first, second, other = (
        make_token_keys(ids, block_size=16)
        for ids in (TOKEN_IDS[:50], TOKEN_IDS[:90], TOKEN_IDS[9:])
    )

    assert first.session == second.session != other.session
    assert make_token_keys([1, 2]).session != make_token_keys([1, 3]).session


@pytest.mark.parametrize("token_id", [-1, 2**40, 2**70])
def test_ids_that_no_vocabulary_has_get_no_keys(token_id: int) -> None:
    assert make_token_keys([*TOKEN_IDS[:100], token_id], block_size=16).blocks == ()


def test_pieces_follow_each_other_and_double() -> None:
    found = list(cut_pieces(100_000, 10))

    assert [end for _, end in found[:-1]] == [begin for begin, _ in found[1:]]
    assert [end for _, end in found] == [find_end(number + 1, 10) for number in range(len(found))]
    assert found[PIECES_PER_LENGTH - 1] == (630, 640)
    assert found[PIECES_PER_LENGTH] == (640, 660)
    assert list(cut_pieces(100_000, 10, first=100)) == found[100:]
    assert len(found) < 64 * 8
