"""Makes drafts with a smaller model (draft model).

Rules
1. The draft model's KV cache has as many blocks as the large model's. A sequence uses blocks of the
   same numbers in both: there is one block table.
2. The draft model computes a sequence's tokens when the sequence drafts, not before. Missing tokens
   are caught up with, a limited number in each step. A block that it has computed completely is
   known by its key, so another sequence that shares the block finds it computed.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ModelRunner
from ouzel.engine.flat_batch import Span, build_flat_batch, prefix_sums
from ouzel.engine.sampling.draft_draws import DraftRequest, DraftTokens, draw_drafts
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.drafting import FIRST_CHANCES, Drafting
from ouzel.engine.state.sequence import Sequence

_MAX_LAG = 32  # missing tokens that are computed together with the first draft


class DraftModel:
    """Makes drafts with a smaller model, which has a KV cache of its own."""

    def __init__(self, runner: ModelRunner, vocab_size: int) -> None:
        """`vocab_size` is the large model's.

        Tokens beyond either vocabulary are not drafted or read.
        """
        self.runner = runner
        self._vocab_size = min(vocab_size, runner.info.vocab_size)
        self._rates = AcceptanceRates(FIRST_CHANCES)
        self._keys: dict[int, bytes] = {}  # keys of completely computed blocks, by block number

    def begin(self, sequence: Sequence) -> Drafting | None:
        """Returns the sequence's drafting state; None if this model cannot draft for it."""
        if sequence.num_tokens >= self.runner.info.max_model_len or sequence.images is not None:
            return None
        if sequence.drafting is None:
            sequence.drafting = Drafting(self._rates, self._num_cached_tokens(sequence))
        drafting = sequence.drafting
        uncached = sequence.token_ids[drafting.num_cached_tokens :]
        return drafting if max(uncached) < self.runner.info.vocab_size else None

    def catch_up(self, sequences: Iterable[Sequence], num_tokens: int) -> None:
        """Computes missing tokens of sequences that lack many, at most `num_tokens` in all."""
        spans = []
        for sequence in sequences:
            drafting = sequence.drafting
            if drafting is None or not self.lags(sequence) or num_tokens <= 0:
                continue
            begin = drafting.num_cached_tokens
            token_ids = sequence.token_ids[begin : min(begin + num_tokens, sequence.num_tokens - 1)]
            spans.append((sequence.block_table, begin, token_ids))
            num_tokens -= len(token_ids)
            drafting.num_cached_tokens += len(token_ids)
        if spans:
            self._run(spans, np.zeros(0, np.int64))

    def lags(self, sequence: Sequence) -> bool:
        return (
            sequence.drafting is None
            or sequence.drafting.num_missing_tokens(sequence.num_tokens) > _MAX_LAG
        )

    def draft(self, requests: list[DraftRequest]) -> DraftTokens:
        """Returns the drafted tokens of each sequence.

        A draft ends early below the confidence threshold.
        """
        drafts: DraftTokens = {request.sequence: [] for request in requests}
        while requests:
            spans, ends = [], []
            for sequence in (request.sequence for request in requests):
                drafting = sequence.drafting
                assert drafting is not None
                known = sequence.token_ids[drafting.num_cached_tokens :]
                drafted = drafts[sequence][
                    max(0, drafting.num_cached_tokens - sequence.num_tokens) :
                ]
                spans.append((sequence.block_table, drafting.num_cached_tokens, known + drafted))
                ends.append(len(known + drafted))
                drafting.num_cached_tokens += len(known + drafted)
            last_rows = prefix_sums(np.array(ends, dtype=np.int32))[1:].astype(np.int64) - 1
            logits = self._run(spans, last_rows)
            requests = draw_drafts(requests, [row[: self._vocab_size] for row in logits], drafts)
        return drafts

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_accepted: int) -> None:
        """Records the result of a draft that followed `num_tokens` tokens."""
        drafting = sequence.drafting
        if drafting is None:
            return
        drafting.note(num_tried, num_accepted)
        drafting.num_cached_tokens = min(drafting.num_cached_tokens, num_tokens + num_accepted)
        self._note_blocks(sequence, drafting)

    def record(self, scheduled: Iterable[Scheduled]) -> None:
        """Does nothing: this source needs no data of a step."""

    def settle(self, scheduled: Iterable[Scheduled]) -> None:
        """Does nothing: this source computes tokens when it drafts."""

    def close(self) -> None:
        self.runner.close()

    def _run(self, spans: list[Span], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        block_size = self.runner.info.block_size
        for table, begin, token_ids in spans:
            for block in table[begin // block_size : -(-(begin + len(token_ids)) // block_size)]:
                self._keys.pop(block, None)
        return self.runner.run(build_flat_batch(spans, rows, block_size))

    def _num_cached_tokens(self, sequence: Sequence) -> int:
        num_blocks = 0
        for block, key in zip(sequence.block_table, sequence.block_keys, strict=False):
            if self._keys.get(block) != key:
                break
            num_blocks += 1
        return min(num_blocks * self.runner.info.block_size, sequence.num_tokens - 1)

    def _note_blocks(self, sequence: Sequence, drafting: Drafting) -> None:
        """Records the keys of whole blocks, as far as the large model has computed them."""
        num_tokens = min(drafting.num_cached_tokens, sequence.num_computed_tokens)
        end = min(
            num_tokens // self.runner.info.block_size,
            len(sequence.block_keys),
            len(sequence.block_table),
        )
        for place in range(drafting.num_noted_blocks, end):
            self._keys[sequence.block_table[place]] = sequence.block_keys[place]
        drafting.num_noted_blocks = max(drafting.num_noted_blocks, end)
