"""Proposes the tokens that followed the last tokens of a sequence in an earlier text.

The searched texts are the client's prediction, the prompt and the output so far, and recent
answers. The longest match wins; its length determines the chance of acceptance, and each accepted
token makes the match longer by one. If nothing matches because a token was replaced, the text may
continue after the replaced token: a match of length 0. Sources: Saxena, Prompt Lookup Decoding
(2023); Oliaro et al., SuffixDecoding, arXiv 2411.04975.
"""

from bisect import bisect_right
from itertools import takewhile

import msgspec

from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.past_texts import BETWEEN, IndexedText
from ouzel.engine.speculation.rules.suffix_index import MAX_MATCH, SuffixIndex

MAX_PROPOSED = 31  # together with the row before them: a power of two
_LENGTHS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)  # shortest match of each class
_MIN_CHANCE = 0.03
# for each class, until some tokens were proposed
FIRST_CHANCES = (0.15, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
_LEAST_FOLLOWED = 2  # shortest match after which the output is taken to follow another text
_MAX_REPLACED = 4  # replaced tokens in a row after which it is not


class LookupProposal(msgspec.Struct, frozen=True):
    """The proposed tokens and the length of the match before them."""

    token_ids: tuple[int, ...]
    match_length: int


class _Followed(msgspec.Struct, frozen=True):
    """A place in another text where the output continues, or did until lately."""

    source: list[int]
    place: int
    num_tokens: int  # tokens of the sequence at that time
    num_replaced: int = 0

    def place_at(self, num_tokens: int) -> int:
        """Moves the place on by the tokens that the sequence gained."""
        return self.place + num_tokens - self.num_tokens

    def skip_replaced(self, num_tokens: int) -> "_Followed":
        return _Followed(self.source, self.place_at(num_tokens), num_tokens, self.num_replaced + 1)


class PromptLookup:
    """Finds proposals for one sequence."""

    def __init__(
        self, common_rates: AcceptanceRates, predicted_token_ids: list[int], num_prompt_tokens: int
    ) -> None:
        self.rates = AcceptanceRates(common_rates)
        self._num_prompt_tokens = num_prompt_tokens
        self._own = SuffixIndex()
        # The output begins like its prediction after any prompt: `BETWEEN` marks the start
        # of both.
        self._predicted = (
            IndexedText([BETWEEN, *predicted_token_ids]) if predicted_token_ids else None
        )
        self._followed: _Followed | None = None

    def propose(
        self,
        token_ids: list[int],
        past: list[IndexedText],
        *,
        max_length: int | None,
        max_ngram: int | None,
    ) -> LookupProposal | None:
        """Finds tokens that may follow prompt and output, `token_ids`; None if nothing matches."""
        limit = MAX_MATCH if max_ngram is None else max_ngram
        num_proposed = MAX_PROPOSED if max_length is None else min(max_length, MAX_PROPOSED)
        match = self._find_longest(token_ids, past, limit)
        if match is not None and match.length >= _LEAST_FOLLOWED:
            self._followed = _Followed(match.source, match.place, len(token_ids))
        elif self._followed is not None:
            followed = self._followed.skip_replaced(len(token_ids))
            self._followed = followed if followed.num_replaced < _MAX_REPLACED else None
            if match is None or self.rates.chance(_find_class(0)) > self.rates.chance(
                _find_class(match.length)
            ):
                match = _TextMatch(followed.source, followed.place, 0)
        return None if match is None else _make_proposal(match, num_proposed)

    def _find_longest(
        self, token_ids: list[int], past: list[IndexedText], limit: int
    ) -> "_TextMatch | None":
        self._own.follow(token_ids)
        best = self._search(self._own, token_ids, token_ids, limit, len(token_ids))
        if self._predicted is not None:
            output = [BETWEEN, *token_ids[self._num_prompt_tokens :]]
            match = self._search(
                self._predicted.index, self._predicted.token_ids, output, limit, len(token_ids)
            )
            if match is not None and (
                best is None or match.length >= min(best.length, len(output))
            ):
                best = match
        for text in past:
            match = self._search(text.index, text.token_ids, token_ids, limit, len(token_ids))
            if match is not None and (best is None or match.length > best.length):
                best = match
        return best

    def _search(
        self, index: SuffixIndex, source: list[int], end: list[int], limit: int, num_tokens: int
    ) -> "_TextMatch | None":
        """Searches one text; tries the place first where the followed text continues.

        A common pair of tokens has more places than the search tries.
        """
        followed = self._followed
        likely = (
            None
            if followed is None or followed.source is not source
            else followed.place_at(num_tokens)
        )
        match = index.longest(source, end, limit, likely)
        return None if match is None else _TextMatch(source, match.place, match.length)

    def chances(self, proposal: LookupProposal) -> list[float]:
        """Returns for each token the probability that it and all before it are accepted, while not
        tiny.
        """
        chances, chance = list[float](), 1.0
        for number in range(len(proposal.token_ids)):
            chance *= self.rates.chance(_find_class(proposal.match_length + number))
            if chance < _MIN_CHANCE and chances:
                break
            chances.append(chance)
        return chances

    def note(self, proposal: LookupProposal, num_tried: int, num_accepted: int) -> None:
        """Records the accepted tokens; tokens after the first rejected one do not count."""
        for number in range(min(num_tried, num_accepted + 1)):
            self.rates.note(
                _find_class(proposal.match_length + number), accepted=number < num_accepted
            )


class _TextMatch(msgspec.Struct, frozen=True):
    source: list[int]
    place: int
    length: int


def _make_proposal(match: _TextMatch, num: int) -> LookupProposal | None:
    following = takewhile(
        lambda token_id: token_id != BETWEEN, match.source[match.place : match.place + num]
    )
    token_ids = tuple(following)
    return LookupProposal(token_ids, match.length) if token_ids else None


def _find_class(match_length: int) -> int:
    return bisect_right(_LENGTHS, match_length) - 1
