"""A token has one answer where its row is computed in one way: this is what `--deterministic` asks of a step.

The runtime computes the attention of a subsequence with one row and of a subsequence with several rows by two kernels,
which round differently. Nothing else that a step holds changes the bits of a row (docs/decisions/0043; a runner says so
by `EngineInfo.is_deterministic`, having tried it). So the sequences of such an engine keep two kinds of rows
(`Sequence.keeps_kinds`).

Rules
1. Rows of a prompt go together: a subsequence has two tokens of the prompt at least, and none behind the prompt.
2. Rows behind the prompt go apart: each is a subsequence of its own, be it sampled, forced, guessed, or computed again
   after a preemption.
3. The prefix cache gives tokens of prompts for tokens of prompts, and leaves two of them to be computed. Blocks with
   generated tokens are not found.
4. A prompt of one token has no other row beside it: rule 2 holds for it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ouzel.engine.state.sequence import Sequence

LEAST_TOGETHER = 2  # rows of a prompt in a subsequence


def goes_apart(sequence: "Sequence") -> bool:
    """Tells whether the next rows of the sequence are subsequences of their own, by their kind."""
    return sequence.keeps_kinds and (
        sequence.is_past_prompt or sequence.num_prompt_tokens < LEAST_TOGETHER
    )


def num_of_one_kind(sequence: "Sequence") -> int:
    """Counts the uncomputed tokens that one chunk may have."""
    if not sequence.keeps_kinds or goes_apart(sequence):
        return sequence.num_uncomputed_tokens
    return sequence.num_prompt_tokens - sequence.num_computed_tokens


def shortened(sequence: "Sequence", length: int) -> int:
    """Returns the length of a chunk that neither has nor leaves a single token of the prompt; 0 where there is none."""
    if not sequence.keeps_kinds or goes_apart(sequence):
        return length
    if num_of_one_kind(sequence) - length == 1:
        length -= 1
    return length if length >= LEAST_TOGETHER else 0
