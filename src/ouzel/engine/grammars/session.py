"""One sequence's way through its grammar, and the masks of a whole batch."""

import re
from collections.abc import Sequence

import numpy as np
from llguidance import LLExecutor, LLMatcher
from llguidance.numpy import fill_next_token_bitmask_par
from numpy.typing import NDArray

_LIMIT = re.compile(r"max is|too (?:many|large|big)|limit|fuel exhausted")

Row = NDArray[np.float32]  # [vocab_size] logits


# By byte of a mask, its eight tokens, lowest bit first: 0 where one is allowed, else minus infinity. Adding them is
# four times as fast as unpacking the bits and writing where they are 0.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
_PENALTIES = np.where(_BITS == 1, np.float32(0), np.float32(-np.inf)).astype(np.float32)  # [256, 8]


class GrammarBroken(Exception):
    """The grammar engine gave up on this sequence: a limit of its own, or a token that it does not expect."""

    @property
    def is_too_complex(self) -> bool:
        """It met a limit; of which the library's stop reason says nothing."""
        return bool(_LIMIT.search(str(self)))


class Session:
    """Owned by the engine's thread. Tokens go in, masks come out."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    @property
    def is_complete(self) -> bool:
        """Nothing but an end token can follow."""
        return self._matcher.is_stopped() and not self._matcher.is_error()

    def accept(self, token_id: int) -> None:
        """Raises GrammarBroken, after which the session is of no use."""
        if not self._matcher.consume_token(token_id):
            raise GrammarBroken(self._matcher.get_error() or f"token {token_id} does not fit the grammar")

    def forced(self) -> list[int]:
        """The tokens that must follow, in the tokenizer's own spelling; not yet accepted. Raises GrammarBroken."""
        token_ids = self._matcher.compute_ff_tokens()
        if self._matcher.is_error():
            raise GrammarBroken(self._matcher.get_error())
        return token_ids

    def fork(self) -> "Session":
        return Session(self._matcher.deep_copy())

    def error(self) -> str:
        """Why the last mask is not to be trusted; "" when it is."""
        return self._matcher.get_error() if self._matcher.is_error() else ""


class Masks:
    """Which tokens may follow, for the sequences of one step. One native call for all: each call gives up the GIL."""

    def __init__(self, vocab_size: int, num_threads: int = 1) -> None:
        """`vocab_size`: of the grammar tokenizer, at least the width of the rows."""
        self._num_words = -(-vocab_size // 32)
        self._penalties = np.empty((4 * self._num_words, 8), dtype=np.float32)  # kept: of the row in hand
        self._executor = LLExecutor(num_threads=num_threads)

    def apply(self, rows: Sequence[Row], sessions: Sequence[Session]) -> list[str]:
        """Forbids in place; returns each session's error, "" where there is none (then its row is untouched)."""
        if not rows:
            return []
        bits = np.empty((len(rows), self._num_words), dtype=np.int32)
        pairs = [(session._matcher, place) for place, session in enumerate(sessions)]
        fill_next_token_bitmask_par(self._executor, pairs, bits)
        errors = [session.error() for session in sessions]
        for row, allowed, error in zip(rows, bits.view(np.uint8), errors, strict=True):
            if not error:
                np.take(_PENALTIES, allowed, axis=0, out=self._penalties, mode="clip")  # "raise" would copy
                np.add(row, self._penalties.reshape(-1)[: row.size], out=row)
        return errors
