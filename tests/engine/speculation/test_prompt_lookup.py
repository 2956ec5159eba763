import pytest

from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.past_texts import BETWEEN, PastTexts
from ouzel.engine.speculation.rules.prompt_lookup import FIRST_CHANCES, LookupProposal, PromptLookup


def lookup_for(predicted: list[int] | None = None, num_prompt_tokens: int = 3) -> PromptLookup:
    return PromptLookup(AcceptanceRates(FIRST_CHANCES), predicted or [], num_prompt_tokens)


def propose(
    lookup: PromptLookup, token_ids: list[int], past: PastTexts | None = None, salt: str = ""
) -> list[int]:
    found = lookup.propose(
        token_ids, (past or PastTexts()).find(salt), max_length=4, max_ngram=None
    )
    return [] if found is None else list(found.token_ids)


def test_the_tokens_that_followed_before_are_proposed_again() -> None:
    assert propose(lookup_for(), [1, 2, 3, 4, 5, 6, 7, 1, 2, 3]) == [4, 5, 6, 7]
    assert propose(lookup_for(), [1, 2, 3, 4]) == []


def test_an_output_begins_as_its_prediction_does_and_is_found_again_where_it_parts() -> None:
    predicted = [10, 11, 12, 13, 14, 15, 16]
    lookup = lookup_for(predicted)
    prompt = [1, 10, 2]
    assert propose(lookup, [*prompt, 10]) == [11, 12, 13, 14]
    assert propose(lookup, [*prompt, 10, 99]) == [12, 13, 14, 15], "one token was replaced"
    assert propose(lookup, [*prompt, 10, 99, 13, 14]) == [15, 16]


def test_a_replaced_part_is_given_up_after_some_tokens() -> None:
    text = [*range(10, 40), 1, 10, 11, 12]
    lookup = lookup_for(num_prompt_tokens=len(text))
    assert propose(lookup, text) == [13, 14, 15, 16]
    found = [propose(lookup, text := [*text, 90 + number]) for number in range(6)]
    assert found == [[14, 15, 16, 17], [15, 16, 17, 18], [16, 17, 18, 19], [17, 18, 19, 20], [], []]
    assert propose(lookup, [*text, 20, 21]) == [22, 23, 24, 25]


@pytest.mark.parametrize(
    ("times_right", "expected"), [(0, [60, 10, 11, 12]), (20, [14, 15, 16, 17])]
)
def test_the_followed_text_counts_more_than_a_place_of_the_last_token_if_it_proved_right(
    times_right: int, expected: list[int]
) -> None:
    lookup = lookup_for()
    for _ in range(times_right):
        lookup.note(LookupProposal((15,), 0), 1, 1)
    text = [50, 60, *range(10, 20), 1, 10, 11, 12]
    assert propose(lookup, text) == [13, 14, 15, 16]
    assert propose(lookup, [*text, 50]) == expected


def test_earlier_answers_are_searched_under_their_own_salt() -> None:
    past = PastTexts()
    past.add("a", [5, 6, 7, 8])
    past.add("a", [20, 21])
    # a proposal ends with its text
    assert propose(lookup_for(), [1, 2, 3, 5, 6], past, "a") == [7, 8]
    assert propose(lookup_for(), [1, 2, 3, 5, 6], past, "b") == []
    assert all(
        BETWEEN not in propose(lookup_for(), [1, 2, 3, each], past, "a")
        for each in (5, 6, 7, 8, 20, 21)
    )


def test_old_answers_go() -> None:
    past = PastTexts()
    past.add("", [1, 2, 3])
    for number in range(40):
        past.add("", [100 + number] * 5000)
    assert sum(len(text.token_ids) for text in past.find("")) < 160_000
    assert propose(lookup_for(), [9, 9, 9, 1, 2], past) == []
    for number in range(100):
        past.add(f"{number}", [1, 2, 3])
    assert past.find("") == []


def test_chances_are_learned_by_the_length_of_the_match() -> None:
    lookup = lookup_for()
    guesses = LookupProposal((4, 5, 6), match_length=2)
    first = lookup.chances(guesses)
    assert first == sorted(first, reverse=True)
    for _ in range(30):
        # the first one comes, the second does not; nothing is known about the third
        lookup.note(guesses, 3, 1)
    chances = lookup.chances(guesses)
    assert chances[0] > 0.8
    assert sum(chances[1:]) < 0.1
    long = LookupProposal((4, 5, 6), match_length=20)
    assert lookup.chances(long) == lookup_for().chances(long)


def test_a_sequence_begins_with_the_rates_that_others_learned() -> None:
    common = AcceptanceRates(FIRST_CHANCES)
    guesses = LookupProposal((4, 5, 6), match_length=2)
    before = PromptLookup(common, [], 1).chances(guesses)[0]
    PromptLookup(common, [], 1).note(guesses, 1, 1)
    assert PromptLookup(common, [], 1).chances(guesses)[0] > before


def test_the_followed_text_is_found_though_its_pairs_are_common() -> None:
    """The pair (7, 7) stands in a hundred places, and a look-up tries only a few of them.

    The copied text stands before all of them.
    """
    copied = [1, 2, 3, 7, 7, 4, 7, 7, 5, 6]
    others = [each for number in range(100) for each in (100 + number, 7, 7)]
    text = [*copied, *others, 1, 2, 3]
    lookup = lookup_for(num_prompt_tokens=len(text))
    for number in range(3, 9):
        assert propose(lookup, text) == text[number : number + 4]
        text.append(copied[number])
