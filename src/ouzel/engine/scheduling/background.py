"""Limits the work of requests in the background, so that other requests do not feel it.

Rules
1. While other requests run or wait, the background gets `_SHARE` of the engine's time: each of
   their steps earns credit, and a step with background work costs the time that it takes longer
   than steps with about as many tokens of others: a step of prompts says nothing about a step
   that decodes. At most every second step of others has background work, so that the times of
   steps without it are always new.
2. A request that arrives waits for the present step. For `_CALM_S` after the last step of other
   requests, a step of background work therefore takes at most `_PART_OF_WAIT` of the time that
   other requests need to their first token. The limit of tokens follows the measured steps.
3. At all other times the background gets whole steps.
"""

import time
from collections.abc import Callable, Iterable

_SHARE = 0.05
_CALM_S = 10.0
_PART_OF_WAIT = 0.1
_SHORTEST_S, _LONGEST_S = 0.003, 0.1  # bounds of a limited step
_NEWEST = 0.3  # weight of the newest value in an average


class Background:
    """Counts the engine's time, and decides how many background tokens the next step may have."""

    def __init__(self, max_num_tokens: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`max_num_tokens` is the size of a whole step; `clock` returns seconds."""
        self._max_num_tokens = max_num_tokens
        self._clock = clock
        self._limit = min(16.0, max_num_tokens)  # tokens of a limited step
        self._credit_s = 0.0
        # Average times of steps without background work, by the bit lengths of their tokens.
        self._others_step_s: dict[int, float] = {}
        self._others_are_next = False  # the last step of others had background work
        self._first_token_s = 0.0  # average time to the first token of other requests
        self._last_others_s: float | None = None  # time of their last step

    def num_tokens(self, *, has_others: bool) -> int:
        """Returns the most background tokens of the next step.

        `has_others` tells whether other requests run or wait.
        """
        if has_others:
            may_run = self._credit_s > 0.0 and not self._others_are_next
            return self.num_limited_tokens if may_run else 0
        last_s = self._last_others_s
        is_calm = last_s is None or self._clock() - last_s > _CALM_S
        return self._max_num_tokens if is_calm else self.num_limited_tokens

    @property
    def num_limited_tokens(self) -> int:
        """Returns the most background tokens of a step that other requests may wait for."""
        return max(1, int(self._limit))

    def note_step(
        self,
        took_s: float,
        *,
        num_tokens: int,
        num_others_tokens: int,
        first_token_waits_s: Iterable[float],
    ) -> None:
        """Counts a step of `took_s` with `num_tokens` tokens in the background.

        It computed `num_others_tokens` tokens of other requests too. `first_token_waits_s` are
        times from the arrival of such requests to their first tokens, which the step has computed.
        """
        for wait_s in first_token_waits_s:
            self._first_token_s = _average(self._first_token_s, wait_s)
        own_s = took_s
        if num_others_tokens:
            self._last_others_s = self._clock()
            self._credit_s = min(self._credit_s + _SHARE * took_s, _LONGEST_S)
            self._others_are_next = num_tokens > 0
            size = num_others_tokens.bit_length()
            others_s = self._others_step_s.get(size)
            if not num_tokens:
                self._others_step_s[size] = _average(others_s or 0.0, took_s)
                return
            if others_s is None:  # no step of this size without background work yet
                others_s = took_s * num_others_tokens / (num_others_tokens + num_tokens)
            own_s = max(took_s - others_s, 0.0)
            self._credit_s -= own_s
        if num_tokens:
            self._adapt_limit(own_s, num_tokens)

    def _adapt_limit(self, own_s: float, num_tokens: int) -> None:
        longest_s = min(max(_PART_OF_WAIT * self._first_token_s, _SHORTEST_S), _LONGEST_S)
        if own_s > longest_s:
            self._limit = max(1.0, min(self._limit, num_tokens) * longest_s / own_s)
        elif num_tokens >= self.num_limited_tokens:
            self._limit = min(self._limit * 1.25, self._max_num_tokens)


def _average(old: float, new: float) -> float:
    return new if not old else (1 - _NEWEST) * old + _NEWEST * new
