"""From logits to tokens.

Order of operations: logit_bias, penalties, min_tokens, temperature, top_k, min_p, top_p, draw. Logprobs are those
of the model's own distribution, before all of this. `ouzel.sampling` has the same as plain reference functions.

Three ways to a token, chosen by a row's own parameters alone, so that batch neighbours never matter:
- greedy: argmax.
- a small top_k: the row is cut down to its candidates; the rest is vectorised over the batch on that small matrix.
- else: a token is drawn from the whole row and then checked against top_p. When the tokens more likely than it
  already reach top_p, it is ruled out and the next draw is among those only. This is rejection sampling: exactly the
  distribution that sorting gives, in about 1 / top_p tries at most, without the sort. It costs one exp per logit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from math import isnan

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.philox import uniforms
from ouzel.engine.sequence import Sequence
from ouzel.engine.token_counts import TokenCounts
from ouzel.sampling import SamplingParams
from ouzel.types import PositionLogprobs, TokenLogprob

Row = NDArray[np.float32]  # [vocab_size]

_MAX_CANDIDATES = 1024  # beyond, the row as a whole is cheaper than a matrix as wide as the largest top_k


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampled token."""

    token_id: int
    logprobs: PositionLogprobs | None


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """A row that only has to be drawn from."""

    row: Row
    sequence: Sequence
    own_logprobs: "OwnLogprobs | None"


def prepare(row: Row, sequence: Sequence) -> PreparedRow:
    """Notes the model's own logprobs where they are wanted, then adjusts the row in place."""
    num_logprobs = sequence.params.num_logprobs
    own_logprobs = None if num_logprobs is None else OwnLogprobs(row, num_logprobs)
    adjust(row, sequence)
    return PreparedRow(row, sequence, own_logprobs)


def draw(prepared: list[PreparedRow]) -> list[Sampled | None]:
    """The next token of each row, which is overwritten; None where the model's output is not a number."""
    token_ids = choose_tokens([each.row for each in prepared], [each.sequence for each in prepared])
    return [
        None if token_id is None else Sampled(token_id, each.own_logprobs.at(token_id) if each.own_logprobs else None)
        for each, token_id in zip(prepared, token_ids, strict=True)
    ]


# Adjusting the logits


def adjust(row: Row, sequence: Sequence) -> None:
    """Applies logit_bias, min_tokens and penalties in place."""
    params = sequence.params
    for token_id, bias in params.logit_bias:
        row[token_id] += bias
    if params.repetition_penalty != 1.0 or params.presence_penalty != 0.0 or params.frequency_penalty != 0.0:
        _penalise(row, sequence)
    if sequence.num_output_tokens < params.min_tokens:
        row[[token_id for token_id in sequence.stop_token_ids if token_id < row.size]] = -np.inf


def _penalise(row: Row, sequence: Sequence) -> None:
    params = sequence.params
    if sequence.token_counts is None:
        sequence.token_counts = TokenCounts(sequence.request.prompt_token_ids)
    counts = sequence.token_counts
    counts.follow(sequence.token_ids[sequence.num_prompt_tokens :])
    seen = row[counts.token_ids]
    seen = np.where(
        seen > 0, seen / np.float32(params.repetition_penalty), seen * np.float32(params.repetition_penalty)
    )
    seen -= np.float32(params.presence_penalty) * (counts.output_counts > 0)
    seen -= np.float32(params.frequency_penalty) * counts.output_counts
    row[counts.token_ids] = seen


# Choosing


def choose_tokens(rows: list[Row], sequences: list[Sequence]) -> list[int | None]:
    """One token id per row, None for a row without a finite largest logit; overwrites rows drawn from as a whole."""
    token_ids: list[int | None] = [None] * len(rows)
    with_top_k: list[int] = []
    without: list[int] = []
    for i, (row, sequence) in enumerate(zip(rows, sequences, strict=True)):
        if sequence.params.is_greedy:
            most_likely = int(row.argmax())
            token_ids[i] = most_likely if np.isfinite(row[most_likely]) else None
        else:
            (with_top_k if 0 < sequence.params.top_k < min(row.size, _MAX_CANDIDATES) else without).append(i)
    for places, draw_tokens in ((with_top_k, draw_from_top_k), (without, draw_from_all)):
        if places:
            drawn = draw_tokens([rows[i] for i in places], [sequences[i] for i in places])
            for i, token_id in zip(places, drawn, strict=True):
                token_ids[i] = token_id
    return token_ids


def _num_columns(row: Row) -> int:
    """A long row is seen as a matrix with this many columns: numpy then reduces it at full width."""
    return 1024 if row.size >= 8192 else 1


def largest(row: Row, num: int) -> NDArray[np.int64]:
    """Ids of at least the `num` largest elements, in no order: all that reach a bound which `num` elements reach.

    The row is seen as columns of a matrix; `num` column maxima reach the num-th largest of them, so it is such a bound.
    """
    num_columns = _num_columns(row)
    if num * 4 >= num_columns:
        return np.flatnonzero(row >= np.partition(row, -num)[-num])
    num_full = row.size // num_columns * num_columns
    maxima = row[:num_full].reshape(-1, num_columns).max(axis=0)
    return np.flatnonzero(row >= np.partition(maxima, -num)[-num])


def draw_from_top_k(rows: list[Row], sequences: list[Sequence]) -> list[int | None]:
    """Temperature, top_k, min_p, top_p and the draw on the candidates of each row, most likely first."""
    params = [sequence.params for sequence in sequences]
    candidates = [largest(row, each.top_k) for row, each in zip(rows, params, strict=True)]
    width = max(*(each.size for each in candidates), *(each.top_k for each in params))  # none where a row is NaN
    token_ids = np.zeros((len(candidates), width), dtype=np.int64)
    values = np.full((len(candidates), width), -np.inf)
    for i, ids in enumerate(candidates):
        token_ids[i, : ids.size] = ids
        values[i, : ids.size] = rows[i][ids]
    order = np.argsort(-values, axis=1, kind="stable")
    values = np.take_along_axis(values, order, axis=1)
    usable = np.isfinite(values[:, 0])
    values[~usable] = 0.0
    weights = np.exp((values - values[:, :1]) / _column(params, "temperature"))
    kth = np.array([each.top_k for each in params])[:, None] - 1
    weights[values < np.take_along_axis(values, kth, axis=1)] = 0.0
    weights[weights < _column(params, "min_p")] = 0.0
    cumulative = np.cumsum(weights, axis=1)
    last_kept = (cumulative >= _column(params, "top_p") * cumulative[:, -1:]).argmax(axis=1)[:, None]
    weights[weights < np.take_along_axis(weights, last_kept, axis=1)] = 0.0
    cumulative = np.cumsum(weights, axis=1)
    drawn = (cumulative > _uniforms(sequences)[:, None] * cumulative[:, -1:]).argmax(axis=1)[:, None]
    chosen = np.take_along_axis(np.take_along_axis(token_ids, order, axis=1), drawn, axis=1)
    return [int(token_id) if good else None for token_id, good in zip(chosen[:, 0], usable, strict=True)]


def draw_from_all(rows: list[Row], sequences: list[Sequence]) -> list[int | None]:
    """Row by row, while it is in the CPU's cache; only the random numbers are made for all at once."""
    firsts = _uniforms(sequences).tolist()
    return [draw_from_row(row, each, first) for row, each, first in zip(rows, sequences, firsts, strict=True)]


def draw_from_row(row: Row, sequence: Sequence, first_uniform: float) -> int | None:
    """Temperature, min_p, top_p and the draw on a whole row, which becomes unnormalised probabilities (largest: 1)."""
    params = sequence.params
    largest_logit = row.max()
    if not np.isfinite(largest_logit):
        return None
    if 0 < params.top_k < row.size:
        row[row < np.partition(row, -params.top_k)[-params.top_k]] = -np.inf
    row -= largest_logit
    row *= np.float32(1.0 / params.temperature)
    weights = np.exp(row, out=row)
    if params.min_p > 0.0:
        weights[weights < np.float32(params.min_p)] = 0.0
    mass = ColumnSums(weights)
    needed = params.top_p * mass.total
    token_id = mass.find(first_uniform)
    for attempt in count(1):
        if params.top_p == 1.0 or mass_above(weights, weights[token_id]) < needed:
            return token_id
        weights[weights <= weights[token_id]] = 0.0
        token_id = ColumnSums(weights).find(float(_uniforms([sequence], attempt)[0]))
    raise AssertionError("unreachable: the most likely token is never ruled out")


def mass_above(weights: Row, bound: np.float32) -> float:
    """The sum of all weights greater than the bound."""
    above = weights > bound
    return float(np.dot(weights, above.astype(np.float32)))


class ColumnSums:
    """The row seen as columns of a matrix, to find where a share of its mass lies without summing up the whole row."""

    def __init__(self, weights: Row) -> None:
        self._num_columns = _num_columns(weights)
        self._num_full = weights.size // self._num_columns * self._num_columns
        self._matrix = weights[: self._num_full].reshape(-1, self._num_columns)
        columns = self._matrix.sum(axis=0, dtype=np.float32).astype(np.float64)
        tail = weights[self._num_full :].astype(np.float64)
        self._cumulative = np.cumsum(
            np.concatenate([columns, tail])
        )  # columns first, then each tail element for itself

    @property
    def total(self) -> float:
        return float(self._cumulative[-1])

    def find(self, share: float) -> int:
        """The index at which the given share (in [0, 1)) of the mass is passed; its weight is not 0."""
        target = share * self.total
        place = int(np.searchsorted(self._cumulative, target, side="right"))
        if place >= self._num_columns:
            return self._num_full + place - self._num_columns
        column = np.cumsum(self._matrix[:, place], dtype=np.float64)
        rest = target - (float(self._cumulative[place - 1]) if place else 0.0)
        # The column was summed in float32: its last element may lie below what is looked for.
        rest = min(rest, float(np.nextafter(column[-1], 0.0)))
        return int(np.searchsorted(column, rest, side="right")) * self._num_columns + place


def _column(params: list[SamplingParams], name: str) -> NDArray[np.float64]:
    return np.array([[getattr(each, name)] for each in params], dtype=np.float64)


def _uniforms(sequences: list[Sequence], draw: int = 0) -> NDArray[np.float64]:
    return uniforms(
        np.array([sequence.params.seed for sequence in sequences], dtype=np.int64),
        np.array([sequence.index for sequence in sequences], dtype=np.int64),
        np.array([sequence.num_output_tokens for sequence in sequences], dtype=np.int64),
        draw,
    )


# Logprobs


def score(rows: Iterable[Row], token_ids: Iterable[int], num_top: int) -> list[PositionLogprobs]:
    """The logprobs of tokens that were given rather than sampled.

    Raises ValueError when the model's output is not a number.
    """
    positions = [OwnLogprobs(row, num_top).of_prompt(token_id) for row, token_id in zip(rows, token_ids, strict=True)]
    if any(isnan(position.sampled.logprob) for position in positions):
        raise ValueError("the model's logits are not numbers")
    return positions


class OwnLogprobs:
    """The log probabilities of the model's own distribution at one position."""

    def __init__(self, row: Row, num_top: int) -> None:
        self._num_top = num_top
        self._row = row.copy()  # the sampler overwrites its own
        largest_logit = row.max()
        self._normaliser = float(largest_logit) + float(np.log(np.exp(row - largest_logit).sum(dtype=np.float64)))

    def at(self, token_id: int) -> PositionLogprobs:
        """Of the sampled token and the most likely ones."""
        return PositionLogprobs(self._logprob(token_id), tuple(map(self._logprob, self._most_likely(self._num_top))))

    def of_prompt(self, token_id: int) -> PositionLogprobs:
        """Of the token that stands in the prompt, with its rank, and the most likely ones."""
        rank = 1 + int(np.count_nonzero(self._row > self._row[token_id]))
        position = self.at(token_id)
        return PositionLogprobs(position.sampled, position.top, rank)

    def _logprob(self, token_id: int) -> TokenLogprob:
        return TokenLogprob(token_id, float(self._row[token_id]) - self._normaliser)

    def _most_likely(self, num: int) -> list[int]:
        if num == 0:
            return []
        token_ids = largest(self._row, min(num, self._row.size))
        descending: list[int] = token_ids[np.argsort(-self._row[token_ids], kind="stable")].tolist()
        return descending[:num]
