"""Follows sequences through their grammars; one call makes the masks of a whole batch."""

import re
from collections.abc import Sequence

import numpy as np
from llguidance import LLExecutor, LLMatcher
from llguidance.numpy import fill_next_token_bitmask_par
from numpy.typing import NDArray

_LIMIT = re.compile(r"max is|too (?:many|large|big)|limit|fuel exhausted")

Row = NDArray[np.float32]  # [vocab_size] logits


# For each byte of a mask, the terms of its eight tokens, lowest bit first: 0 if allowed, else -inf.
# Adding them is four times as fast as unpacking the bits and writing where they are 0.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
_PENALTIES = np.where(_BITS == 1, np.float32(0), np.float32(-np.inf)).astype(np.float32)


class GrammarBroken(Exception):
    """llguidance gave up on a sequence, at one of its limits or at an unexpected token."""

    @property
    def is_too_complex(self) -> bool:
        """Tells whether a limit was exceeded; the library's stop reason does not tell."""
        return bool(_LIMIT.search(str(self)))

    @property
    def is_dead_end(self) -> bool:
        """Tells whether no text that the grammar admits begins with the text so far."""
        return "NoExtension" in str(self)


class Prototype:
    """A compiled grammar, from which each sequence gets a session of its own.

    Sessions copy its matcher and share its lexer, which grows with use.
    """

    def __init__(self, matcher: LLMatcher, *, num_bytes: int, cpu_s: float) -> None:
        self.num_bytes = num_bytes  # size after the compilation
        self.cpu_s = cpu_s  # CPU time of the compilation
        self.num_tokens = 0  # tokens that its sessions have accepted
        self._matcher = matcher

    def session(self) -> "Session":
        return Session(self._matcher.deep_copy(), self)


class Session:
    """Takes the tokens of one sequence and makes masks. Only the engine's thread uses it."""

    def __init__(self, matcher: LLMatcher, prototype: Prototype) -> None:
        self._matcher = matcher
        self._prototype = prototype

    @property
    def is_complete(self) -> bool:
        """Tells whether only an end token can follow."""
        return self._matcher.is_stopped() and not self._matcher.is_error()

    def accept(self, token_id: int) -> None:
        """Takes the next token. Raises GrammarBroken, which makes the session useless."""
        self._prototype.num_tokens += 1
        if not self._matcher.consume_token(token_id):
            raise GrammarBroken(
                self._matcher.get_error() or f"token {token_id} does not fit the grammar"
            )

    def allows(self, token_id: int) -> bool:
        """Tells whether this token may come next."""
        return self._matcher.validate_tokens([token_id]) == 1

    def num_allowed(self, token_ids: Sequence[int]) -> int:
        """Counts how many of the tokens may come next, one after the other."""
        return self._matcher.validate_tokens(list(token_ids))

    def forced(self) -> list[int]:
        """Returns the tokens that must follow, in the tokenizer's spelling, without accepting them.

        Raises GrammarBroken.
        """
        token_ids = self._matcher.compute_ff_tokens()
        if self._matcher.is_error():
            raise GrammarBroken(self._matcher.get_error())
        return token_ids

    def fork(self) -> "Session":
        return Session(self._matcher.deep_copy(), self._prototype)

    def error(self) -> str:
        """Returns the reason why the last mask is invalid; "" if it is valid."""
        return self._matcher.get_error() if self._matcher.is_error() else ""


class Masks:
    """Applies the grammar masks of a step in one native call, because each call releases the
    GIL.
    """

    def __init__(self, vocab_size: int, num_threads: int = 1) -> None:
        """`vocab_size` is the grammar tokenizer's, at least the width of the rows."""
        self._num_words = -(-vocab_size // 32)
        # working memory for the mask of one row
        self._penalties = np.empty((4 * self._num_words, 8), dtype=np.float32)
        self._executor = LLExecutor(num_threads=num_threads)

    def apply(self, rows: Sequence[Row], sessions: Sequence[Session]) -> list[str]:
        """Sets forbidden tokens to -inf in place; returns the error of each session.

        The error is "" if there is none; a row with an error is unchanged.
        """
        if not rows:
            return []
        bits = np.empty((len(rows), self._num_words), dtype=np.int32)
        pairs = [(session._matcher, place) for place, session in enumerate(sessions)]
        fill_next_token_bitmask_par(self._executor, pairs, bits)
        errors = [session.error() for session in sessions]
        for row, allowed, error in zip(rows, bits.view(np.uint8), errors, strict=True):
            if not error:
                # mode="raise" would copy
                np.take(_PENALTIES, allowed, axis=0, out=self._penalties, mode="clip")
                np.add(row, self._penalties.reshape(-1)[: row.size], out=row)
        return errors
