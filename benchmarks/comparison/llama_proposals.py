"""Adds speculation to llama.cpp's batches: proposers, and the step that checks proposals."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

from benchmarks.comparison.llama_library import Context, Rows

NGRAM_SIZE = 2  # the default of llama-cpp-python's own lookup


class Proposer(Protocol):
    def propose(self, history: list[int]) -> list[int]:
        """Returns the tokens that may follow a sequence."""
        ...

    def close(self) -> None: ...


class PromptLookup:
    def __init__(self, num_proposed: int) -> None:
        self._lookup = LlamaPromptLookupDecoding(NGRAM_SIZE, num_proposed)

    def propose(self, history: list[int]) -> list[int]:
        found: list[int] = self._lookup(np.array(history, np.intc)).tolist()
        return found

    def close(self) -> None:
        pass


class Draft:
    """Proposes with a small model for one sequence, whose tokens the model's memory follows."""

    def __init__(self, context: Context, num_proposed: int) -> None:
        self._context, self._num_proposed = context, num_proposed
        self._computed: list[int] = []  # the tokens that its memory has

    def propose(self, history: list[int]) -> list[int]:
        common = _common_len(self._computed, history)
        common = min(common, len(history) - 1)
        self._context.forget(0, common)
        logits = self._context.prefill(history[common:], first_position=common)
        self._computed = list(history)
        proposed = [int(logits.argmax())]
        while len(proposed) < self._num_proposed:
            logits = self._context.prefill(proposed[-1:], first_position=len(self._computed))
            self._computed.append(proposed[-1])
            proposed.append(int(logits.argmax()))
        return proposed

    def close(self) -> None:
        self._context.close()


def _common_len(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def speculative_step(
    context: Context, histories: list[list[int]], propose: Callable[[list[int]], list[int]]
) -> int:
    """Appends the tokens of a greedy step to each history, and returns their number.

    A step gives the accepted proposals and one more token. The last token of each history is not
    computed yet; all tokens before it are in the context's memory.
    """
    tokens = [[history[-1], *propose(history)] for history in histories]
    counts = [len(each) for each in tokens]
    total = sum(counts)
    starts = [len(history) - 1 for history in histories]
    positions = [
        np.arange(start, start + count) for start, count in zip(starts, counts, strict=True)
    ]
    rows = Rows(
        token_ids=np.concatenate([np.array(each, np.int32) for each in tokens]),
        positions=np.concatenate(positions).astype(np.int32),
        sequences=np.repeat(np.arange(len(histories), dtype=np.int32), counts),
        has_logits=np.ones(total, np.bool_),
    )
    best = context.decode(rows).argmax(axis=1).tolist()
    num_new = first = 0
    for sequence, (history, proposed) in enumerate(zip(histories, tokens, strict=True)):
        num_accepted = _common_len(proposed[1:], best[first : first + len(proposed)])
        history.extend(best[first : first + num_accepted + 1])
        if num_accepted < len(proposed) - 1:
            context.forget(sequence, len(history) - 1)
        num_new += num_accepted + 1
        first += len(proposed)
    return num_new
