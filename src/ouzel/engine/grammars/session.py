"""A session follows one sequence through its grammar; the masks of a whole batch are made in one call."""

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
    """The grammar engine gave up on a sequence, at a limit of its own or a token that it does not expect."""

    @property
    def is_too_complex(self) -> bool:
        """Whether it met a limit, of which the library's stop reason says nothing."""
        return bool(_LIMIT.search(str(self)))

    @property
    def is_dead_end(self) -> bool:
        """Tells whether no text that the grammar admits begins with the text so far."""
        return "NoExtension" in str(self)


class Prototype:
    """A compiled grammar. It is never stepped: sessions are copies, which share its lexer, and that grows with use."""

    def __init__(self, matcher: LLMatcher, *, num_bytes: int, cpu_s: float) -> None:
        self.num_bytes = num_bytes  # when it was compiled
        self.cpu_s = cpu_s  # that this took
        self.num_tokens = 0  # that sessions have taken
        self._matcher = matcher

    def session(self) -> "Session":
        return Session(self._matcher.deep_copy(), self)


class Session:
    """Takes the tokens of one sequence and gives masks; the engine's thread owns it."""

    def __init__(self, matcher: LLMatcher, prototype: Prototype) -> None:
        self._matcher = matcher
        self._prototype = prototype

    @property
    def is_complete(self) -> bool:
        """Whether nothing but an end token can follow."""
        return self._matcher.is_stopped() and not self._matcher.is_error()

    def accept(self, token_id: int) -> None:
        """Takes note of a token. Raises GrammarBroken, after which the session is of no use."""
        self._prototype.num_tokens += 1
        if not self._matcher.consume_token(token_id):
            raise GrammarBroken(
                self._matcher.get_error() or f"token {token_id} does not fit the grammar"
            )

    def allows(self, token_id: int) -> bool:
        """Says whether this token may come next."""
        return self._matcher.validate_tokens([token_id]) == 1

    def num_allowed(self, token_ids: Sequence[int]) -> int:
        """Counts how many of these tokens may come next, one after the other, until one may not."""
        return self._matcher.validate_tokens(list(token_ids))

    def forced(self) -> list[int]:
        """Returns the tokens that must follow, in the tokenizer's spelling, and accepts none. Raises GrammarBroken."""
        token_ids = self._matcher.compute_ff_tokens()
        if self._matcher.is_error():
            raise GrammarBroken(self._matcher.get_error())
        return token_ids

    def fork(self) -> "Session":
        return Session(self._matcher.deep_copy(), self._prototype)

    def error(self) -> str:
        """Returns why the last mask is not to be trusted, or "" when it is."""
        return self._matcher.get_error() if self._matcher.is_error() else ""


class Masks:
    """Forbids what may not follow in the sequences of a step, in one native call: each call gives up the GIL."""

    def __init__(self, vocab_size: int, num_threads: int = 1) -> None:
        """`vocab_size` is that of the grammar tokenizer, at least the width of the rows."""
        self._num_words = -(-vocab_size // 32)
        self._penalties = np.empty(
            (4 * self._num_words, 8), dtype=np.float32
        )  # kept: of the row in hand
        self._executor = LLExecutor(num_threads=num_threads)

    def apply(self, rows: Sequence[Row], sessions: Sequence[Session]) -> list[str]:
        """Forbids in place, and returns each session's error: "" is none, any other leaves its row untouched."""
        if not rows:
            return []
        bits = np.empty((len(rows), self._num_words), dtype=np.int32)
        pairs = [(session._matcher, place) for place, session in enumerate(sessions)]
        fill_next_token_bitmask_par(self._executor, pairs, bits)
        errors = [session.error() for session in sessions]
        for row, allowed, error in zip(rows, bits.view(np.uint8), errors, strict=True):
            if not error:
                np.take(
                    _PENALTIES, allowed, axis=0, out=self._penalties, mode="clip"
                )  # "raise" would copy
                np.add(row, self._penalties.reshape(-1)[: row.size], out=row)
        return errors
