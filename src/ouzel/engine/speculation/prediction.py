"""A layer behind the model's guesses tokens after the next one (multi-token prediction).

Rules
1. Its entry for token t takes the model's hidden row of t and token t+1, and says what token t+2 may be. So it has one
   entry less than the model has tokens, and its keys and values lie in the blocks of the model's.
2. Those of a prompt are made as it is computed: whether drafts pay or not, its blocks hold what others attend to. The
   hidden rows of further tokens are kept until a sequence drafts, or until they are many. The last one stays, which a
   draft begins with. Those of tokens that were rejected are dropped.
3. Entries behind a sequence's last token are guesses like their tokens: the next step's hidden rows replace them.
4. What the model did not compute for a sequence (a prefix from the cache, the tokens before a fork) is taken as it is
   in the blocks. The last entry of a shared block may be of another next token, and the last ones of an answer may
   lack: at worst a guess is poor.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import HiddenRunner
from ouzel.engine.flat_batch import Span, build_flat_batch, prefix_sums
from ouzel.engine.sampling.draft_draws import Drafted, Want, draw_drafts
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.drafting import Drafting
from ouzel.engine.state.sequence import Sequence

Rows = NDArray[np.float32]  # [some, hidden size]

# Of the first guess, which the layer is trained for, and of each further one if that before it came. A few steps tell
# better.
_FIRST_CHANCE, _INHERITED, _NUM_DEPTHS = 0.8, 0.95, 5
_MOST_WAITING = 256  # hidden rows of a sequence
_MAX_LAG = 32  # that are made entries of together with the first draft


class Entries(Drafting):
    """A sequence's tokens up to `num_cached_tokens` are in entries, and hidden rows wait for further ones."""

    def __init__(self, common_rates: AcceptanceRates, begin: int) -> None:
        super().__init__(common_rates, begin + 1)
        self._rows: list[Rows] = []
        self.num_waiting = 0
        # tokens that were known when they were last computed, before proposed ones,
        self.num_sure = begin
        self.num_accepted = 0  # and how many of those the sequence had taken over

    @property
    def begin(self) -> int:
        """Returns the first position without an entry."""
        return self.num_cached_tokens - 1

    def is_ready(self, num_tokens: int) -> bool:
        """Tells whether the last of so many tokens is all that lacks a hidden row, and a row waits."""
        return self.num_waiting > 0 and self.begin + self.num_waiting == num_tokens - 1

    def add(self, begin: int, rows: Rows) -> None:
        """Takes rows from position `begin` on. Those that are known already are the same."""
        num_known = self.begin + self.num_waiting - begin
        if num_known < 0:
            self._keep(rows[:0])
            self.num_cached_tokens, num_known = begin + 1, 0
        self._rows.append(rows[num_known:].copy())
        self.num_waiting += len(self._rows[-1])

    def cut(self, num_tokens: int, num_accepted: int) -> None:
        """Drops rows of tokens that did not come, where a sequence has so many, and has taken over so many in all.

        Others may have been appended without being computed.
        """
        num_computed = self.num_sure + num_accepted - self.num_accepted
        most = max(0, min(num_tokens, num_computed + 1) - self.num_cached_tokens)
        if self.num_waiting > most:
            self._keep(self._joined()[:most])

    def take(self, number: int) -> Rows:
        """Returns the first so many rows, which become entries."""
        rows = self._joined()
        self._keep(rows[number:])
        self.num_cached_tokens += number
        return rows[:number]

    def _joined(self) -> Rows:
        return np.concatenate(self._rows) if self._rows else np.zeros((0, 0), np.float32)

    def _keep(self, rows: Rows) -> None:
        """Copies them: a few rows of many would keep all of these in memory."""
        self._rows, self.num_waiting = ([rows.copy()] if len(rows) else []), len(rows)


class PredictionLayer:
    def __init__(self, model: HiddenRunner, layer: HiddenRunner) -> None:
        self.runner = layer
        self._model = model
        self._rates = AcceptanceRates((_FIRST_CHANCE,) * _NUM_DEPTHS, inherits=_INHERITED)

    def begin(self, sequence: Sequence) -> Drafting | None:
        """Returns what is known of a sequence's drafts; None: a hidden row lacks."""
        entries = sequence.drafting
        return (
            entries
            if isinstance(entries, Entries) and entries.is_ready(sequence.num_tokens)
            else None
        )

    def catch_up(self, sequences: Iterable[Sequence], num_tokens: int) -> None:
        """Makes entries for those that lack many, of so many rows in all at most."""
        numbers: dict[Sequence, int] = {}
        for sequence in sequences:
            if self.lags(sequence):
                assert isinstance(sequence.drafting, Entries)
                numbers[sequence] = min(
                    sequence.drafting.num_waiting - 1, num_tokens - sum(numbers.values())
                )
        self._make(numbers)

    def lags(self, sequence: Sequence) -> bool:
        return isinstance(sequence.drafting, Entries) and sequence.drafting.num_waiting > _MAX_LAG

    def record(self, scheduled: Iterable[Scheduled]) -> None:
        """Keeps the hidden rows of a step that has just run.

        Those of a prompt become entries at once, before others find its blocks. No logits are asked for: those of the
        step are still to be looked at.
        """
        begin, numbers = 0, {}
        for entry in scheduled:
            sequence, rows = entry.sequence, self._model.hidden_rows[begin:]
            num_rows = entry.num_new_tokens + len(sequence.proposal)
            begin += num_rows
            if not _may_draft(sequence):
                continue
            if sequence.drafting is None:
                sequence.drafting = Entries(self._rates, sequence.num_computed_tokens)
            entries = sequence.drafting
            assert isinstance(entries, Entries)
            entries.add(sequence.num_computed_tokens, rows[:num_rows])
            entries.num_sure = sequence.num_computed_tokens + entry.num_new_tokens
            entries.num_accepted = sequence.num_accepted_tokens
            if not sequence.is_past_prompt:
                numbers[sequence] = min(
                    entries.num_waiting - 1, sequence.num_tokens - entries.num_cached_tokens
                )
        self._make(numbers)

    def settle(self, scheduled: Iterable[Scheduled]) -> None:
        """Drops the hidden rows of what did not come, and makes entries of those that are many."""
        numbers = {}
        for sequence in (entry.sequence for entry in scheduled):
            entries = sequence.drafting
            if sequence.is_finished or not isinstance(entries, Entries):
                continue
            entries.cut(sequence.num_tokens, sequence.num_accepted_tokens)
            if entries.num_waiting > _MOST_WAITING:
                numbers[sequence] = entries.num_waiting - 1
        self._make(numbers)

    def draft(self, wants: list[Want]) -> Drafted:
        """Returns the tokens drafted for each; fewer than wanted where the layer is not as sure as is asked for."""
        drafts: Drafted = {want.sequence: [] for want in wants}
        spans, rows = [], []
        for sequence in drafts:
            entries = sequence.drafting
            assert isinstance(entries, Entries) and entries.num_waiting
            span, own_rows = _taken(sequence, entries, entries.num_waiting)
            spans.append(span)
            rows.append(own_rows)
        while wants:
            ends = prefix_sums(np.array([len(own) for own in rows], np.int32))[1:].astype(np.int64)
            logits = self._run(spans, rows, ends - 1)
            places = {want.sequence: place for place, want in enumerate(wants)}
            wants = draw_drafts(wants, list(logits), drafts)
            rows = [self.runner.hidden_rows[[places[want.sequence]]] for want in wants]
            spans = [_guessed_span(want.sequence, drafts[want.sequence]) for want in wants]
        return drafts

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_came: int) -> None:
        """Takes note of what came of a draft behind so many tokens."""
        if sequence.drafting is not None:
            sequence.drafting.note(num_tried, num_came)

    def close(self) -> None:
        """Leaves the layer to the model's runner, of which it is a part."""

    def _make(self, numbers: dict[Sequence, int]) -> None:
        """Makes so many entries of each."""
        taken = []
        for sequence, number in numbers.items():
            if number > 0 and isinstance(sequence.drafting, Entries):
                taken.append(_taken(sequence, sequence.drafting, number))
        if taken:
            self._run(
                [span for span, _ in taken], [rows for _, rows in taken], np.zeros(0, np.int64)
            )

    def _run(self, spans: list[Span], rows: list[Rows], sampled_rows: NDArray[np.int64]) -> Rows:
        batch = build_flat_batch(spans, sampled_rows, self.runner.info.block_size)
        return self.runner.run(replace(batch, hidden_rows=np.concatenate(rows)))


def _may_draft(sequence: Sequence) -> bool:
    """Those too that want no guesses: others may find their prompt."""
    return sequence.images is None and not sequence.beams


def _taken(sequence: Sequence, entries: Entries, number: int) -> tuple[Span, Rows]:
    """Returns what the next so many entries are made of."""
    begin, first = entries.begin, entries.num_cached_tokens
    return (sequence.block_table, begin, sequence.token_ids[first : first + number]), entries.take(
        number
    )


def _guessed_span(sequence: Sequence, drafted: list[int]) -> Span:
    return sequence.block_table, sequence.num_tokens - 2 + len(drafted), drafted[-1:]
