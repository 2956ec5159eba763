"""Makes drafts with a prediction layer of the model itself, or with an EAGLE-3 head.

Rules
1. The layer's entry for token t reads the model's hidden row of t and token t+1, and predicts token
   t+2. So it has one entry less than the model has tokens. Its keys and values lie in the model's
   blocks. If token t+1 stands for an image, the entry reads the features instead of the token. The
   position of the entry is token t's.
2. The entries of a prompt are made while it is computed, whether drafts pay or not, because others
   may share its blocks. The hidden rows of further tokens are kept until the sequence drafts, or
   until there are many. The last row stays: a draft begins with it. The rows of rejected tokens are
   dropped.
3. Entries after a sequence's last token are as uncertain as their tokens: the hidden rows of the
   next step replace them.
4. For tokens that the model did not compute for a sequence (a cached prefix, the tokens before a
   fork), the entries in the blocks are used. The last entry of a shared block may belong to another
   next token, and the last entries of an answer may be missing: at worst a proposal is poor.
5. A layer that cannot read features drafts for requests without images only. Of other prompts it
   makes the entries that read the tokens before the first image, because requests without images
   may share their blocks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import HiddenRunner
from ouzel.engine.flat_batch import build_flat_batch, prefix_sums
from ouzel.engine.sampling.draft_draws import DraftRequest, DraftTokens, draw_drafts
from ouzel.engine.scheduling.batch_images import TokenRows, find_image_rows, place_in_grids
from ouzel.engine.scheduling.image_encoder import NO_IMAGES, ImageEncoder, NoImages
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.drafting import Drafting
from ouzel.engine.state.sequence import Sequence

Rows = NDArray[np.float32]  # [some, hidden size]

# The chance of the first token, for which the layer is trained, and the factor for each further
# token after an accepted one. A few steps give better values.
_FIRST_CHANCE, _INHERITED, _NUM_DEPTHS = 0.8, 0.95, 5
_MOST_WAITING = 256  # hidden rows of a sequence that may be kept
_MAX_LAG = 32  # hidden rows that become entries together with the first draft


class Entries(Drafting):
    """The drafting state of a sequence: `num_cached_tokens`, which are in entries of the layer, and
    the hidden rows that wait to become entries.
    """

    def __init__(self, common_rates: AcceptanceRates, begin: int) -> None:
        super().__init__(common_rates, begin + 1)
        self._rows: list[Rows] = []
        self.num_waiting = 0
        # tokens that were known, not proposed, when they were last computed
        self.num_sure = begin
        self.num_accepted = 0  # accepted tokens of the sequence at that time

    @property
    def begin(self) -> int:
        """Returns the first position without an entry."""
        return self.num_cached_tokens - 1

    def is_ready(self, num_tokens: int) -> bool:
        """Tells whether hidden rows wait for all tokens but the last of `num_tokens`."""
        return self.num_waiting > 0 and self.begin + self.num_waiting == num_tokens - 1

    def add(self, begin: int, rows: Rows) -> None:
        """Adds the rows from position `begin` on, except rows that it already has."""
        num_known = self.begin + self.num_waiting - begin
        if num_known < 0:
            self._keep(rows[:0])
            self.num_cached_tokens, num_known = begin + 1, 0
        self._rows.append(rows[num_known:].copy())
        self.num_waiting += len(self._rows[-1])

    def cut(self, num_tokens: int, num_accepted: int) -> None:
        """Drops the rows of rejected tokens.

        The sequence now has `num_tokens` tokens and has accepted `num_accepted` in all. A grammar
        may have appended tokens that were not computed.
        """
        num_computed = self.num_sure + num_accepted - self.num_accepted
        most = max(0, min(num_tokens, num_computed + 1) - self.num_cached_tokens)
        if self.num_waiting > most:
            self._keep(self._joined()[:most])

    def take(self, number: int) -> Rows:
        """Removes and returns the first `number` rows, which become entries."""
        rows = self._joined()
        self._keep(rows[number:])
        self.num_cached_tokens += number
        return rows[:number]

    def _joined(self) -> Rows:
        return np.concatenate(self._rows) if self._rows else np.zeros((0, 0), np.float32)

    def _keep(self, rows: Rows) -> None:
        """Keeps a copy: a view of a few rows would keep the whole array in memory."""
        self._rows, self.num_waiting = ([rows.copy()] if len(rows) else []), len(rows)


class _NewEntries(msgspec.Struct, frozen=True):
    """Successive entries of a sequence, from position `begin` on."""

    sequence: Sequence
    begin: int
    token_ids: list[int]  # the token after the position of each entry
    rows: Rows


class PredictionLayer:
    """Makes drafts with the prediction layer of the model, or with its EAGLE-3 head."""

    def __init__(
        self,
        model: HiddenRunner,
        layer: HiddenRunner,
        images: ImageEncoder | NoImages | None = NO_IMAGES,
    ) -> None:
        """`images` is None if the layer cannot read features."""
        self.runner = layer
        self._model = model
        self._images = images
        self._rates = AcceptanceRates((_FIRST_CHANCE,) * _NUM_DEPTHS, inherits=_INHERITED)

    def begin(self, sequence: Sequence) -> Drafting | None:
        """Returns the sequence's drafting state; None if a hidden row is missing."""
        if self._is_unreadable(sequence):
            return None
        entries = sequence.drafting
        if isinstance(entries, Entries) and entries.is_ready(sequence.num_tokens):
            return entries
        return None

    def catch_up(self, sequences: Iterable[Sequence], num_tokens: int) -> None:
        """Makes entries for sequences that lack many, from at most `num_tokens` rows in all."""
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

        The rows of a prompt become entries at once, before other sequences find its blocks. No
        logits are computed, because the logits of the step have not been read yet.
        """
        begin, numbers = 0, {}
        for entry in scheduled:
            sequence, rows = entry.sequence, self._model.hidden_rows[begin:]
            num_rows = entry.num_new_tokens + len(sequence.proposal)
            begin += num_rows
            num_rows = min(num_rows, self._count_usable(sequence) - sequence.num_computed_tokens)
            if num_rows <= 0:
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
                    entries.num_waiting - (not self._is_unreadable(sequence)),
                    sequence.num_tokens - entries.num_cached_tokens,
                )
        self._make(numbers)

    def settle(self, scheduled: Iterable[Scheduled]) -> None:
        """Drops the hidden rows of rejected tokens; makes entries where many rows wait."""
        numbers = {}
        for sequence in (entry.sequence for entry in scheduled):
            entries = sequence.drafting
            if sequence.is_finished or not isinstance(entries, Entries):
                continue
            entries.cut(sequence.num_tokens, sequence.num_accepted_tokens)
            if entries.num_waiting > _MOST_WAITING:
                numbers[sequence] = entries.num_waiting - 1
        self._make(numbers)

    def draft(self, requests: list[DraftRequest]) -> DraftTokens:
        """Returns the drafted tokens of each sequence.

        A draft ends early below the confidence threshold.
        """
        drafts: DraftTokens = {request.sequence: [] for request in requests}
        entries = [_take_entries(sequence, _count_waiting(sequence)) for sequence in drafts]
        while requests:
            lens = np.array([len(each.token_ids) for each in entries], np.int32)
            logits = self._run(entries, prefix_sums(lens)[1:].astype(np.int64) - 1)
            places = {request.sequence: place for place, request in enumerate(requests)}
            requests = draw_drafts(requests, list(logits), drafts)
            entries = [
                _make_draft_entry(
                    request.sequence,
                    drafts[request.sequence],
                    self.runner.hidden_rows[[places[request.sequence]]],
                )
                for request in requests
            ]
        return drafts

    def note(self, sequence: Sequence, num_tokens: int, num_tried: int, num_accepted: int) -> None:
        """Records the result of a draft that followed `num_tokens` tokens."""
        if sequence.drafting is not None:
            sequence.drafting.note(num_tried, num_accepted)

    def close(self) -> None:
        """Does nothing: the layer belongs to the model's runner."""

    def _is_unreadable(self, sequence: Sequence) -> bool:
        """Tells whether the sequence has images that the layer cannot read."""
        return self._images is None and sequence.images is not None

    def _count_usable(self, sequence: Sequence) -> int:
        """Returns how many of the first hidden rows may become entries.

        It does not matter whether this sequence wants drafts: others may share its prompt.
        """
        if sequence.beams:
            return 0
        if self._is_unreadable(sequence):
            assert sequence.images is not None
            return sequence.images.first_token - 1
        return sequence.num_tokens + len(sequence.proposal)

    def _make(self, numbers: dict[Sequence, int]) -> None:
        """Makes entries from the given number of rows of each sequence."""
        entries = [
            _take_entries(sequence, number) for sequence, number in numbers.items() if number > 0
        ]
        if entries:
            self._run(entries, np.zeros(0, np.int64))

    def _run(self, entries: list[_NewEntries], sampled_rows: NDArray[np.int64]) -> Rows:
        batch = build_flat_batch(
            [(each.sequence.block_table, each.begin, each.token_ids) for each in entries],
            sampled_rows,
            self.runner.info.block_size,
        )
        begins = batch.subsequence_begins
        # text before an image has the positions of a text without images
        seeing = [] if self._images is None else entries
        image_rows, image_features = find_image_rows(
            _token_rows(seeing, begins, shift=1), self._images or NO_IMAGES
        )
        return self.runner.run(
            replace(
                batch,
                positions=place_in_grids(_token_rows(seeing, begins), batch.positions),
                image_rows=image_rows,
                image_features=image_features,
                hidden_rows=np.concatenate([each.rows for each in entries]),
            )
        )


def _count_waiting(sequence: Sequence) -> int:
    assert isinstance(sequence.drafting, Entries) and sequence.drafting.num_waiting
    return sequence.drafting.num_waiting


def _take_entries(sequence: Sequence, number: int) -> _NewEntries:
    """Takes the tokens and hidden rows of the next `number` entries."""
    entries = sequence.drafting
    assert isinstance(entries, Entries)
    begin, first = entries.begin, entries.num_cached_tokens
    token_ids = sequence.token_ids[first : first + number]
    return _NewEntries(sequence, begin, token_ids, entries.take(number))


def _make_draft_entry(sequence: Sequence, drafted: list[int], rows: Rows) -> _NewEntries:
    begin = sequence.num_tokens - 2 + len(drafted)
    return _NewEntries(sequence, begin, drafted[-1:], rows)


def _token_rows(
    entries: list[_NewEntries], begins: NDArray[np.int32], *, shift: int = 0
) -> Iterator[TokenRows]:
    """Yields the rows of the entries, for the tokens `shift` places after each entry."""
    for each, first_row in zip(entries, begins.tolist(), strict=False):
        begin = each.begin + shift
        yield TokenRows(each.sequence, begin, begin + len(each.token_ids), first_row)
