"""Applies the rules of a transcript to the logits of its next token.

Source: openai-whisper, decoding.py (SuppressTokens, SuppressBlank, ApplyTimestampRules).
"""

import numpy as np

from ouzel.engine.state.columns import Row
from ouzel.engine.state.sequence import Sequence
from ouzel.types.engine_request import TranscriptRules


def follow_transcript_rules(row: Row, sequence: Sequence) -> None:
    """Applies the rules of the sequence's request in place, if it has any."""
    rules = sequence.request.transcript_rules
    if rules is not None:
        apply_transcript_rules(row, sequence.token_ids[sequence.num_prompt_tokens :], rules)


def apply_transcript_rules(row: Row, token_ids: list[int], rules: TranscriptRules) -> None:
    """Sets the logits of forbidden tokens to -inf in place; `token_ids` is the output so far."""
    row[list(rules.suppressed)] = -np.inf
    if not token_ids:
        row[list(rules.suppressed_first)] = -np.inf
    first = rules.first_timestamp
    if first is None:
        return
    _pair_timestamps(row, token_ids, rules.end_token_id, first)
    if not token_ids:
        row[:first] = -np.inf
        if rules.max_first_timestamp is not None:
            row[first + rules.max_first_timestamp + 1 :] = -np.inf
    if _sum_exponentials(row[first:]) > row[:first].max():
        row[:first] = -np.inf


def _pair_timestamps(row: Row, token_ids: list[int], end_token_id: int, first: int) -> None:
    """Forbids a third timestamp in a row, a text after a single one, and earlier timestamps."""
    ends_with_timestamp = bool(token_ids) and token_ids[-1] >= first
    is_complete = len(token_ids) < 2 or token_ids[-2] >= first
    if ends_with_timestamp and is_complete:
        row[first:] = -np.inf
    elif ends_with_timestamp:
        row[:end_token_id] = -np.inf
    last = next((each for each in reversed(token_ids) if each >= first), None)
    if last is not None:
        # A segment must not be empty, but the second timestamp of a pair may equal the first.
        may_repeat = ends_with_timestamp and not is_complete
        row[first : last if may_repeat else last + 1] = -np.inf


def _sum_exponentials(logits: Row) -> float:
    """Returns log(sum(exp(logits)))."""
    largest = float(logits.max())
    if not np.isfinite(largest):
        return largest
    return largest + float(np.log(np.exp(logits - largest).sum()))
