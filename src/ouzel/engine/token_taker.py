"""Samples tokens from the logits of a step and appends them to their sequences.

Rules
1. A fault of one sequence ends only this sequence.
2. The rows of proposed tokens are sampled one after the other, each like any other row: with the
   seed, the counts, the bans and the grammar after the tokens before it. So a sequence gets the
   same tokens as without proposals. A row counts only while every sampled token before it equals
   its proposed token.
"""

import logging
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.grammars.session import GrammarBroken
from ouzel.engine.open_requests import OpenRequests
from ouzel.engine.outputs import make_output
from ouzel.engine.sampling.constraints import Constraints
from ouzel.engine.sampling.sampler import Sampled, draw, explain_no_token, prepare
from ouzel.engine.state.columns import Row
from ouzel.engine.state.sequence import Sequence
from ouzel.errors import STOPS
from ouzel.types.step_output import FinishReason

logger = logging.getLogger(__name__)

Rows = NDArray[np.float32]  # [rows, vocab_size] logits


class TokenTaker:
    """Appends the sampled tokens of a step to their sequences and makes the outputs."""

    def __init__(
        self,
        requests: OpenRequests,
        constraints: Constraints,
        blocks: BlockManager,
        max_model_len: int,
    ) -> None:
        self._requests = requests
        self._constraints = constraints
        self._blocks = blocks
        self._max_model_len = max_model_len

    def take(self, rows_by_sequence: Iterable[tuple[Sequence, Rows]]) -> None:
        """Samples tokens for each sequence from its rows.

        The first row follows the sequence's last token; each further row follows one proposed
        token.
        """
        pending = list(rows_by_sequence)
        while pending:
            num_accepted = self._sample([(rows[0], sequence) for sequence, rows in pending])
            pending = [
                (sequence, rows[num_accepted[sequence] :])
                for sequence, rows in pending
                if sequence in num_accepted
            ]

    def _sample(self, rows: list[tuple[Row, Sequence]]) -> dict[Sequence, int]:
        """Samples one row of each sequence.

        Returns the number of new tokens for the sequences whose new tokens all equal the proposal.
        """
        prepared = []
        for row, sequence in rows:
            try:
                prepared.append(prepare(row, sequence))
            except STOPS:
                raise
            except BaseException as error:  # one request's fault must not end its batch neighbours
                logger.exception("sampling failed for request %s", sequence.request.request_id)
                self._requests.end(sequence, FinishReason.ERROR, f"sampling failed: {error}")
        broken = self._constraints.mask(prepared)
        if broken:
            for sequence, why in broken.items():
                self._requests.end_broken([sequence], why)
            prepared = [each for each in prepared if not each.sequence.is_finished]
        num_accepted = {}
        for each, sampled in zip(prepared, draw(prepared), strict=True):
            if sampled is None:
                self._requests.end(each.sequence, *explain_no_token(each))
            elif (num := self._give(each.sequence, sampled)) and not each.sequence.is_finished:
                num_accepted[each.sequence] = num
        return num_accepted

    def _give(self, sequence: Sequence, sampled: Sampled) -> int:
        """Appends the sampled token.

        Returns the number of new tokens if all equal the proposal, else 0.
        """
        num_tokens = sequence.num_tokens
        sequence.append(sampled.token_id, self._max_model_len)
        is_followed = sequence.session is not None or sequence.reasoning_limit is not None
        if is_followed and not sequence.is_finished:
            try:
                self._constraints.follow(sequence, self._max_model_len)
            except GrammarBroken as error:
                self._requests.end_broken([sequence], error)
                return 0
        num_new_tokens = sequence.num_tokens - num_tokens
        num_accepted = self._accept(sequence, num_tokens) if sequence.proposal else 0
        self._requests.outputs.append(
            make_output(sequence, sampled, sequence.token_ids[num_tokens:])
        )
        if sequence.is_finished:
            self._requests.retire(sequence)
        return num_accepted if num_accepted == num_new_tokens else 0

    def _accept(self, sequence: Sequence, begin: int) -> int:
        """Marks the new tokens from `begin` on that equal the proposal as computed; returns their
        number.

        Recurrent states are at the end of the proposal, so for them the tokens count only if all
        are equal.
        """
        num_left = len(sequence.proposal)
        num_accepted = sequence.compare_with_proposal(begin)
        if num_accepted == num_left or (num_accepted and self._blocks.states is None):
            self._blocks.mark_computed(
                sequence, begin + num_accepted - sequence.num_computed_tokens
            )
        return num_accepted
