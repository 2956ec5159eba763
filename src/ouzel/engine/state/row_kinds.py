"""Divides the rows of a step into two kinds, so that each token is computed in one way only
(`--deterministic`).

The runtime computes the attention of a subsequence with one row and of a subsequence with several
rows by two kernels, which round differently. Nothing else in a step changes the bits of a row
(docs/decisions/0043; a runner reports this as `EngineInfo.separates_rows` after a trial). So the
sequences of such an engine have two kinds of rows (`Sequence.keeps_kinds`).

Rules
1. Rows of a prompt go together: a subsequence has at least two tokens of the prompt, and none after
   it.
2. Rows after the prompt go apart: each is a subsequence of its own, whether sampled, forced,
   proposed, or computed again after a preemption.
3. The prefix cache provides tokens of prompts only, for tokens of prompts only, and leaves at least
   two of them to compute. Blocks with generated tokens are not found.
4. A prompt of one token has no other row beside it: rule 2 applies to it.
"""

from ouzel.engine.state.sequence import LEAST_TOGETHER, Sequence


def goes_apart(sequence: Sequence) -> bool:
    """Tells whether each of the sequence's next rows is a subsequence of its own, by its kind."""
    return sequence.keeps_kinds and (
        sequence.is_past_prompt or sequence.num_prompt_tokens < LEAST_TOGETHER
    )


def num_of_one_kind(sequence: Sequence) -> int:
    """Counts the uncomputed tokens of the same kind, which one chunk may have."""
    if not sequence.keeps_kinds or goes_apart(sequence):
        return sequence.num_uncomputed_tokens
    return sequence.num_prompt_tokens - sequence.num_computed_tokens


def shorten(sequence: Sequence, length: int) -> int:
    """Shortens a chunk so that it neither has nor leaves a single prompt token; 0 if impossible."""
    if not sequence.keeps_kinds or goes_apart(sequence):
        return length
    if num_of_one_kind(sequence) - length == 1:
        length -= 1
    return length if length >= LEAST_TOGETHER else 0
