"""What follows the last tokens of a sequence is guessed from where these stood before.

It looks in the text that the client predicts, in the prompt and the output so far, and in what was answered lately. The
longest match wins, and how long it is says how likely its guesses are: each that comes true makes it longer by one.
Where nothing matches because a token was replaced by another, the text may go on behind it as it did: a match of none.
Sources: Saxena, Prompt Lookup Decoding (2023); Oliaro et al., SuffixDecoding, arXiv 2411.04975.
"""

from bisect import bisect_right
from itertools import takewhile

import msgspec

from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.past_texts import BETWEEN, IndexedText
from ouzel.engine.speculation.rules.suffix_index import MAX_MATCH, SuffixIndex

MAX_GUESSES = 31  # with the row in front of them: a power of two
_LENGTHS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)  # with which a class of matches begins
_MIN_CHANCE = 0.03
FIRST_CHANCES = (
    0.15,
    0.15,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.85,
    0.9,
)  # of each class, until some were tried
_LEAST_FOLLOWED = 2  # tokens that match where the output is taken to follow another text
_MAX_REPLACED = 4  # tokens in a row, until it is taken to follow it no more


class Guesses(msgspec.Struct, frozen=True):
    token_ids: tuple[int, ...]
    match_length: int


class _Followed(msgspec.Struct, frozen=True):
    """The output goes on as another text does from `place` on, or did until lately."""

    source: list[int]
    place: int
    num_tokens: int  # of the sequence, then
    num_replaced: int = 0

    def place_at(self, num_tokens: int) -> int:
        """Moves on as the sequence did."""
        return self.place + num_tokens - self.num_tokens

    def behind_replaced(self, num_tokens: int) -> "_Followed":
        return _Followed(self.source, self.place_at(num_tokens), num_tokens, self.num_replaced + 1)


class PromptLookup:
    """Guesses for one sequence."""

    def __init__(
        self, common_rates: AcceptanceRates, predicted_token_ids: list[int], num_prompt_tokens: int
    ) -> None:
        self.rates = AcceptanceRates(common_rates)
        self._num_prompt_tokens = num_prompt_tokens
        self._own = SuffixIndex()
        # The output begins as its prediction does, whatever stands before it: `BETWEEN` stands for that in both.
        self._predicted = (
            IndexedText([BETWEEN, *predicted_token_ids]) if predicted_token_ids else None
        )
        self._followed: _Followed | None = None

    def guess(
        self,
        token_ids: list[int],
        past: list[IndexedText],
        *,
        max_length: int | None,
        max_ngram: int | None,
    ) -> Guesses | None:
        """`token_ids` are those of prompt and output; None: nothing like their end was seen."""
        limit = MAX_MATCH if max_ngram is None else max_ngram
        num_guesses = MAX_GUESSES if max_length is None else min(max_length, MAX_GUESSES)
        found = self._longest(token_ids, past, limit)
        if found is not None and found.length >= _LEAST_FOLLOWED:
            self._followed = _Followed(found.source, found.place, len(token_ids))
        elif self._followed is not None:
            followed = self._followed.behind_replaced(len(token_ids))
            self._followed = followed if followed.num_replaced < _MAX_REPLACED else None
            if found is None or self.rates.chance(_class_of(0)) > self.rates.chance(
                _class_of(found.length)
            ):
                found = _Found(followed.source, followed.place, 0)
        return None if found is None else _guesses(found, num_guesses)

    def _longest(
        self, token_ids: list[int], past: list[IndexedText], limit: int
    ) -> "_Found | None":
        self._own.follow(token_ids)
        best = self._found(self._own, token_ids, token_ids, limit, len(token_ids))
        if self._predicted is not None:
            output = [BETWEEN, *token_ids[self._num_prompt_tokens :]]
            found = self._found(
                self._predicted.index, self._predicted.token_ids, output, limit, len(token_ids)
            )
            if found is not None and (
                best is None or found.length >= min(best.length, len(output))
            ):
                best = found
        for text in past:
            found = self._found(text.index, text.token_ids, token_ids, limit, len(token_ids))
            if found is not None and (best is None or found.length > best.length):
                best = found
        return best

    def _found(
        self, index: SuffixIndex, source: list[int], end: list[int], limit: int, num_tokens: int
    ) -> "_Found | None":
        """Tries first where the text that is followed goes on: a common pair has more places than are tried."""
        followed = self._followed
        likely = (
            None
            if followed is None or followed.source is not source
            else followed.place_at(num_tokens)
        )
        match = index.longest(source, end, limit, likely)
        return None if match is None else _Found(source, match.place, match.length)

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


class _Found(msgspec.Struct, frozen=True):
    source: list[int]
    place: int
    length: int


def _guesses(found: _Found, num: int) -> Guesses | None:
    following = takewhile(
        lambda token_id: token_id != BETWEEN, found.source[found.place : found.place + num]
    )
    token_ids = tuple(following)
    return Guesses(token_ids, found.length) if token_ids else None


def _class_of(match_length: int) -> int:
    return bisect_right(_LENGTHS, match_length) - 1
