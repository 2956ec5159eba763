"""What follows the last tokens of a sequence is guessed from where these stood before.

It looks in the text that the client predicts, in the prompt and the output so far, and in what was answered lately. The
longest match wins, and how long it is says how likely its guesses are: each that comes true makes it longer by one.
Sources: Saxena, Prompt Lookup Decoding (2023); Oliaro et al., SuffixDecoding, arXiv 2411.04975.
"""

from bisect import bisect_right
from itertools import takewhile

import msgspec

from ouzel.engine.speculation.acceptance import AcceptanceRates
from ouzel.engine.speculation.past_texts import BETWEEN, IndexedText
from ouzel.engine.speculation.suffix_index import MAX_MATCH, Match, SuffixIndex

MAX_GUESSES = 31  # with the row in front of them: a power of two
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # with which a class of matches begins
_MIN_CHANCE = 0.03
FIRST_CHANCES = (0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)  # of each class, until some were tried


class Guesses(msgspec.Struct, frozen=True):
    token_ids: tuple[int, ...]
    match_length: int


class PromptLookup:
    """Guesses for one sequence."""

    def __init__(self, common_rates: AcceptanceRates, predicted_token_ids: list[int], num_prompt_tokens: int) -> None:
        self.rates = AcceptanceRates(common_rates)
        self._num_prompt_tokens = num_prompt_tokens
        self._own = SuffixIndex()
        # The output begins as its prediction does, whatever stands before it: `BETWEEN` stands for that in both.
        self._predicted = IndexedText([BETWEEN, *predicted_token_ids]) if predicted_token_ids else None

    def guess(
        self, token_ids: list[int], past: list[IndexedText], *, max_length: int | None, max_ngram: int | None
    ) -> Guesses | None:
        """`token_ids` are those of prompt and output; None: nothing like their end was seen."""
        self._own.follow(token_ids)
        limit = MAX_MATCH if max_ngram is None else max_ngram
        num_guesses = MAX_GUESSES if max_length is None else min(max_length, MAX_GUESSES)
        best, source = self._own.longest(token_ids, token_ids, limit), token_ids
        if self._predicted is not None:
            output = [BETWEEN, *token_ids[self._num_prompt_tokens :]]
            match = self._predicted.index.longest(self._predicted.token_ids, output, limit)
            if match is not None and (best is None or match.length >= min(best.length, len(output))):
                best, source = match, self._predicted.token_ids
        for text in past:
            match = text.index.longest(text.token_ids, token_ids, limit)
            if match is not None and (best is None or match.length > best.length):
                best, source = match, text.token_ids
        return None if best is None else _guesses(best, source, num_guesses)

    def chances(self, guesses: Guesses) -> list[float]:
        """Returns for each guess the probability that it and all before it come true, until that is next to nothing."""
        chances, chance = list[float](), 1.0
        for number in range(len(guesses.token_ids)):
            chance *= self.rates.chance(_class_of(guesses.match_length + number))
            if chance < _MIN_CHANCE and chances:
                break
            chances.append(chance)
        return chances

    def note(self, guesses: Guesses, num_tried: int, num_came: int) -> None:
        """Takes note of which guesses came true; what was behind a wrong one says nothing."""
        for number in range(min(num_tried, num_came + 1)):
            self.rates.note(_class_of(guesses.match_length + number), came=number < num_came)


def _guesses(match: Match, source: list[int], num: int) -> Guesses | None:
    following = takewhile(lambda token_id: token_id != BETWEEN, source[match.place : match.place + num])
    token_ids = tuple(following)
    return Guesses(token_ids, match.length) if token_ids else None


def _class_of(match_length: int) -> int:
    return bisect_right(_LENGTHS, match_length) - 1
