"""Bans tokens by allowed_token_ids, bad_words and no_repeat_ngram_size.

The state is updated token by token, so a step costs a few dictionary look-ups. `apply_bans` in
`tests/engine/reference_sampling.py` is a plain reference function.
"""

from collections import defaultdict

import numpy as np

from ouzel.engine.state.columns import Row
from ouzel.sampling import SamplingParams


class TokenBans:
    """The bans of one sequence."""

    def __init__(self, params: SamplingParams, num_prompt_tokens: int) -> None:
        self._num_prompt_tokens = num_prompt_tokens
        self._allowed = np.array(params.allowed_token_ids, dtype=np.int64)
        self._ngrams = (
            RepeatedNgrams(params.no_repeat_ngram_size) if params.no_repeat_ngram_size else None
        )
        self._always: list[int] = []
        # Bad words of several tokens: (tokens before the last, last token), by the second-to-last
        # token.
        self._endings: dict[int, list[tuple[list[int], int]]] = defaultdict(list)
        for *before, last in params.bad_words:
            if before:
                self._endings[before[-1]].append((before, last))
            else:
                self._always.append(last)

    def apply(self, row: Row, token_ids: list[int]) -> None:
        """Bans tokens that may not follow `token_ids`, prompt and output so far.

        A bad word counts only within the output.
        """
        if self._allowed.size:
            allowed_logits = row[self._allowed]
            row.fill(-np.inf)
            row[self._allowed] = allowed_logits
        banned = [*self._always, *self._ends_of_bad_words(token_ids)]
        if self._ngrams is not None:
            banned += self._ngrams.banned_after(token_ids)
        row[banned] = -np.inf

    def _ends_of_bad_words(self, token_ids: list[int]) -> list[int]:
        return [
            last
            for before, last in self._endings.get(token_ids[-1], ())
            if token_ids[max(len(token_ids) - len(before), self._num_prompt_tokens) :] == before
        ]


class RepeatedNgrams:
    """Remembers the tokens that followed each run of n - 1 tokens of prompt and output."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._followers: dict[tuple[int, ...], set[int]] = defaultdict(set)
        self._num_read = 0

    def banned_after(self, token_ids: list[int]) -> set[int]:
        num_before = self._size - 1
        for place in range(max(self._num_read, num_before), len(token_ids)):
            self._followers[tuple(token_ids[place - num_before : place])].add(token_ids[place])
        self._num_read = len(token_ids)
        return self._followers.get(tuple(token_ids[max(len(token_ids) - num_before, 0) :]), set())
