"""Makes drafts with an assistant, which reads the model's keys and values.

Rules
1. A draft begins with the newest token and the model's hidden row of the token before, which is
   the last computed token. The assistant attends to the tokens that the model has computed, and
   adds no keys and values of its own.
2. A further token of a draft takes the drafted token and the assistant's own hidden row. It has the
   position of the first, the newest token's, and attends to the same tokens.
3. Of each step the hidden rows from which a draft may begin are kept: the last row of a sequence,
   and the rows of its proposal. The next step replaces them. So an assistant never lacks tokens,
   and prompts cost nothing.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import HiddenRunner
from ouzel.engine.flat_batch import build_flat_batch
from ouzel.engine.sampling.draft_draws import DraftRequest, DraftTokens, draw_drafts
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.drafting import Drafting
from ouzel.engine.state.sequence import Sequence

Rows = NDArray[np.float32]  # [some, hidden size]

# The chance of the first token, and the factor for each further token after an accepted one.
_FIRST_CHANCE, _INHERITED, _NUM_DEPTHS = 0.7, 0.9, 5


class LastRows(Drafting):
    """The drafting state of a sequence: the hidden rows from which its next draft may begin."""

    def __init__(self, common_rates: AcceptanceRates) -> None:
        super().__init__(common_rates, 0)
        self._begin, self._rows = 0, np.zeros((0, 0), np.float32)

    def keep(self, begin: int, rows: Rows) -> None:
        """Keeps a copy of the rows from position `begin` on, in place of earlier rows."""
        self._begin, self._rows = begin, rows.copy()

    def find(self, position: int) -> Rows | None:
        """Returns the row of a position, [1, hidden size]; None if it is not kept."""
        place = position - self._begin
        return self._rows[place : place + 1] if 0 <= place < len(self._rows) else None

    def num_missing_tokens(self, num_tokens: int) -> int:
        """Returns 1, the newest token: the others are in the model's cache."""
        return 1


class Assistant:
    """Makes drafts with an assistant of the model."""

    def __init__(self, model: HiddenRunner, assistant: HiddenRunner) -> None:
        self.runner = assistant
        self._model = model
        self._rates = AcceptanceRates((_FIRST_CHANCE,) * _NUM_DEPTHS, inherits=_INHERITED)

    def begin(self, sequence: Sequence) -> Drafting | None:
        """Returns the sequence's drafting state; None if the hidden row is missing.

        A grammar may have appended tokens that the model has not computed.
        """
        rows = sequence.drafting
        is_computed = sequence.num_uncomputed_tokens == 1
        if isinstance(rows, LastRows) and is_computed and _find_row(sequence) is not None:
            return rows
        return None

    def catch_up(self, sequences: Iterable[Sequence], num_tokens: int) -> None:
        """Does nothing: an assistant lacks no tokens."""

    def lags(self, sequence: Sequence) -> bool:
        return False

    def record(self, scheduled: Iterable[Scheduled]) -> None:
        """Keeps the hidden rows of a step that has just run, from which drafts may begin."""
        end = 0
        for entry in scheduled:
            sequence, num_proposed = entry.sequence, len(entry.sequence.proposal)
            end += entry.num_new_tokens + num_proposed
            if not entry.completes_prompt or sequence.beams:
                continue
            if sequence.drafting is None:
                sequence.drafting = LastRows(self._rates)
            assert isinstance(sequence.drafting, LastRows)
            begin = sequence.num_computed_tokens + entry.num_new_tokens - 1
            sequence.drafting.keep(begin, self._model.hidden_rows[end - 1 - num_proposed : end])

    def draft(self, requests: list[DraftRequest]) -> DraftTokens:
        """Returns the drafted tokens of each sequence.

        A draft ends early below the confidence threshold.
        """
        drafts: DraftTokens = {request.sequence: [] for request in requests}
        rows: list[Rows] = []
        for sequence in drafts:
            row = _find_row(sequence)
            assert row is not None, "`begin` has found it"
            rows.append(row)
        while requests:
            sequences = [request.sequence for request in requests]
            tokens = [(drafts[each] or each.token_ids)[-1] for each in sequences]
            logits = self._run(sequences, tokens, rows)
            places = {sequence: place for place, sequence in enumerate(sequences)}
            requests = draw_drafts(requests, list(logits), drafts)
            rows = [self.runner.hidden_rows[[places[request.sequence]]] for request in requests]
        return drafts

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_accepted: int) -> None:
        """Records the result of a draft that followed `num_tokens` tokens."""
        if sequence.drafting is not None:
            sequence.drafting.note(num_tried, num_accepted)

    def settle(self, scheduled: Iterable[Scheduled]) -> None:
        """Does nothing: a row is found by the number of tokens."""

    def close(self) -> None:
        """Does nothing: the assistant belongs to the model's runner."""

    def _run(self, sequences: list[Sequence], tokens: list[int], rows: list[Rows]) -> Rows:
        """Runs a row for each sequence, in the place of the last computed token."""
        spans = [
            (sequence.block_table, sequence.num_tokens - 2, [token])
            for sequence, token in zip(sequences, tokens, strict=True)
        ]
        batch = build_flat_batch(spans, np.arange(len(spans)), self.runner.info.block_size)
        # the newest token's position, which follows the last computed token
        positions = batch.positions + 1
        return self.runner.run(
            replace(batch, positions=positions, hidden_rows=np.concatenate(rows))
        )


def _find_row(sequence: Sequence) -> Rows | None:
    """Returns the hidden row of the token before the newest."""
    assert isinstance(sequence.drafting, LastRows)
    return sequence.drafting.find(sequence.num_tokens - 2)
