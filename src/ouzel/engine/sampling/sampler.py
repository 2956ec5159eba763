"""Turns logits into tokens.

Order of operations: the rules of a transcript, logit_bias, penalties, bans (allowed_token_ids,
bad_words, no_repeat_ngram_size, min_tokens), the due end of a reasoning, the grammar's mask,
temperature, top_k, min_p, top_p, typical_p, draw. Logprobs are of the model's own distribution,
before all of this; only the rules of a transcript come before them.
`tests/engine/reference_sampling.py` has plain reference functions.

The row's own parameters alone choose one of three ways to a token, so batch neighbours never
matter:
- greedy: argmax.
- a small top_k: the row is cut down to its candidates; the rest is vectorised over the batch on
  that small matrix.
- else: a token is drawn from the whole row and then checked against top_p. If the more likely
  tokens already reach top_p, the token is rejected and the next draw is among the more likely
  tokens. This rejection sampling has exactly the distribution of sorting, in about 1 / top_p tries
  at most, without the sort. It costs one exp per logit. typical_p works in the same way, with "more
  typical" for "more likely"; top_p before it needs the sort.

A draw is a race or a search in cumulative weights (`draws`). The times of a race are the same in
all three ways: filters only remove tokens from it.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.engine.sampling import row_memory
from ouzel.engine.sampling.draws import (
    Draw,
    Picker,
    first_uniforms,
    lookup_picker,
    race_key,
    race_keys,
)
from ouzel.engine.sampling.own_logprobs import OwnLogprobs
from ouzel.engine.sampling.penalties import penalise
from ouzel.engine.sampling.token_race import TokenRace, exponentials
from ouzel.engine.sampling.transcript_rules import follow_transcript_rules
from ouzel.engine.state.columns import ColumnSums, Row, largest
from ouzel.engine.state.sequence import Sequence
from ouzel.engine.state.token_bans import TokenBans
from ouzel.sampling import SamplingParams
from ouzel.types.step_output import FinishReason, PositionLogprobs

# Above this top_k, the whole row is cheaper than a matrix as wide as the largest top_k.
_MAX_CANDIDATES = 1024
_NO_WEIGHT = np.float32(-1e9)  # stands for -inf where a product with 0 must be 0
_BANS = ("allowed_token_ids", "bad_words", "no_repeat_ngram_size", "min_tokens")


class Sampled(msgspec.Struct, frozen=True):
    """A drawn token and its logprobs."""

    token_id: int
    logprobs: PositionLogprobs | None


class PreparedRow(msgspec.Struct, frozen=True):
    """A row after all adjustments, ready for the draw."""

    row: Row
    sequence: Sequence
    own_logprobs: OwnLogprobs | None
    is_copy: bool  # the row is a copy in `row_memory`


def prepare(row: Row, sequence: Sequence) -> PreparedRow:
    """Adjusts the row and computes the model's own logprobs if they are requested.

    The row is adjusted in place, or in a copy if the logprobs still need it. The rules of a
    transcript come first: its logprobs count only tokens that they allow, as in openai-whisper.
    """
    params = sequence.params
    follow_transcript_rules(row, sequence)
    own_logprobs = (
        None
        if params.num_logprobs is None
        else OwnLogprobs(row, params.num_logprobs, params.logprob_token_ids)
    )
    adjusts = params.adjusts_logits
    due = () if sequence.reasoning_limit is None else sequence.due_token_ids
    # A grammar's mask comes later.
    is_copy = own_logprobs is not None and (adjusts or bool(due) or sequence.session is not None)
    if is_copy:
        model_row, row = row, row_memory.take(row.size)
        np.copyto(row, model_row)
    if adjusts:
        adjust(row, sequence)
    if due:
        _leave_only(row, due[0])
    return PreparedRow(row, sequence, own_logprobs, is_copy)


def draw(prepared: list[PreparedRow]) -> list[Sampled | None]:
    """Draws the next token of each row; None if no token is left, see `explain_no_token`."""
    token_ids = choose_tokens([each.row for each in prepared], [each.sequence for each in prepared])
    drawn = [
        None
        if token_id is None
        else Sampled(token_id, each.own_logprobs.at(token_id) if each.own_logprobs else None)
        for each, token_id in zip(prepared, token_ids, strict=True)
    ]
    # `explain_no_token` reads a row without a token, so that row is not given back.
    row_memory.give_back(
        [
            each.row
            for each, sampled in zip(prepared, drawn, strict=True)
            if each.is_copy and sampled
        ]
    )
    return drawn


def explain_no_token(prepared: PreparedRow) -> tuple[FinishReason, str]:
    """Returns finish reason and error for a row without a token."""
    bans = [name for name in _BANS if getattr(prepared.sequence.params, name)]
    bans += ["thinking_token_budget"] if prepared.sequence.due_token_ids else []
    bans += ["the grammar"] if prepared.sequence.session is not None else []
    if bans and np.isneginf(prepared.row.max()):
        return (
            FinishReason.REFUSED,
            f"no token is left to choose: {', '.join(bans)} exclude every token",
        )
    return FinishReason.ERROR, "the model's logits are not numbers"


# Adjusting the logits


def adjust(row: Row, sequence: Sequence) -> None:
    """Applies logit_bias, penalties and bans in place."""
    params = sequence.params
    for token_id, bias in params.logit_bias:
        row[token_id] += bias
    if params.penalises_tokens:
        penalise(row, sequence)
    if params.bans_tokens:
        _ban(row, sequence)
    if sequence.num_output_tokens < params.min_tokens:
        row[[token_id for token_id in sequence.stop_token_ids if token_id < row.size]] = -np.inf


def _ban(row: Row, sequence: Sequence) -> None:
    if sequence.token_bans is None:
        sequence.token_bans = TokenBans(sequence.params, sequence.num_prompt_tokens)
    sequence.token_bans.apply(row, sequence.token_ids)


def _leave_only(row: Row, token_id: int) -> None:
    logit = row[token_id]
    row.fill(-np.inf)
    row[token_id] = logit


# Choosing


def choose_tokens(rows: list[Row], sequences: list[Draw]) -> list[int | None]:
    """Returns one token id per row; None for a row whose largest logit is not finite."""
    token_ids: list[int | None] = [None] * len(rows)
    with_top_k: list[int] = []
    without: list[int] = []
    for i, (row, sequence) in enumerate(zip(rows, sequences, strict=True)):
        if sequence.params.is_greedy:
            most_likely = int(row.argmax())
            token_ids[i] = most_likely if np.isfinite(row[most_likely]) else None
        else:
            (with_top_k if _has_candidates(sequence.params, row) else without).append(i)
    for places, draw_tokens in ((with_top_k, draw_from_top_k), (without, draw_from_all)):
        if places:
            drawn = draw_tokens([rows[i] for i in places], [sequences[i] for i in places])
            for i, token_id in zip(places, drawn, strict=True):
                token_ids[i] = token_id
    return token_ids


def _has_candidates(params: SamplingParams, row: Row) -> bool:
    """Tells whether top_k leaves so few tokens that a small matrix of candidates pays."""
    return 0 < params.top_k < min(row.size, _MAX_CANDIDATES)


def draw_from_top_k(rows: list[Row], sequences: list[Draw]) -> list[int | None]:
    """Draws from rows with a small top_k: applies temperature and filters to their candidates."""
    params = [sequence.params for sequence in sequences]
    candidates = [largest(row, each.top_k) for row, each in zip(rows, params, strict=True)]
    # A row of NaN has no candidates, so top_k bounds the width from below.
    width = max(*(each.size for each in candidates), *(each.top_k for each in params))
    token_ids = np.zeros((len(candidates), width), dtype=np.int64)
    values = np.full((len(candidates), width), -np.inf)
    for i, ids in enumerate(candidates):
        token_ids[i, : ids.size] = ids
        values[i, : ids.size] = rows[i][ids]
    order = np.argsort(-values, axis=1, kind="stable")
    values = np.take_along_axis(values, order, axis=1)
    usable = np.isfinite(values[:, 0])
    values[~usable] = 0.0
    log_weights = (values - values[:, :1]) / _column(params, "temperature")
    weights = np.exp(log_weights)
    kth = np.array([each.top_k for each in params])[:, None] - 1
    weights[values < np.take_along_axis(values, kth, axis=1)] = 0.0
    weights[weights < _column(params, "min_p")] = 0.0
    cumulative = np.cumsum(weights, axis=1)
    reaches_top_p = cumulative >= _column(params, "top_p") * cumulative[:, -1:]
    last_kept = reaches_top_p.argmax(axis=1)[:, None]
    weights[weights < np.take_along_axis(weights, last_kept, axis=1)] = 0.0
    typical = [i for i, each in enumerate(params) if each.typical_p < 1.0]
    if typical:
        weights[typical] = keep_typical(
            weights[typical], log_weights[typical], _column(params, "typical_p")[typical]
        )
    token_ids = np.take_along_axis(token_ids, order, axis=1)
    chosen = np.take_along_axis(token_ids, _places_drawn(weights, token_ids, sequences), axis=1)
    return [
        int(token_id) if good else None for token_id, good in zip(chosen[:, 0], usable, strict=True)
    ]


def _places_drawn(
    weights: NDArray[np.float64], token_ids: NDArray[np.int64], sequences: list[Draw]
) -> NDArray[np.int64]:
    """Returns the column of each row's token, [rows, 1]."""
    places = np.zeros((len(sequences), 1), dtype=np.int64)
    racing = [i for i, each in enumerate(sequences) if not each.params.is_seed_random]
    if racing:
        keys = race_keys([sequences[i] for i in racing])[:, None]
        places[racing, 0] = (weights[racing] / exponentials(keys, token_ids[racing])).argmax(axis=1)
    others = [i for i, each in enumerate(sequences) if each.params.is_seed_random]
    if others:
        cumulative = np.cumsum(weights[others], axis=1)
        numbers = first_uniforms([sequences[i] for i in others])[:, None]
        places[others, 0] = (cumulative > numbers * cumulative[:, -1:]).argmax(axis=1)
    return places


def keep_typical(
    weights: NDArray[np.float64], log_weights: NDArray[np.float64], typical_p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sets the weights to 0 that typical_p [rows, 1] excludes.

    The distance of a token's information from the entropy (Meister et al. 2022) equals the distance
    of its logit from the mean logit.
    """
    log_weights = np.maximum(log_weights, _NO_WEIGHT)
    # cumsum adds in order, so the zeros at a row's end, whose number depends on other rows, change
    # nothing.
    totals = np.cumsum(weights, axis=1)[:, -1:]
    deviation = np.abs(log_weights - np.cumsum(weights * log_weights, axis=1)[:, -1:] / totals)
    order = np.argsort(deviation, axis=1, kind="stable")
    cumulative = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    last_kept = (cumulative >= typical_p * totals).argmax(axis=1)[:, None]
    bound = np.take_along_axis(np.take_along_axis(deviation, order, axis=1), last_kept, axis=1)
    return np.where(deviation <= bound, weights, 0.0)


def draw_from_all(rows: list[Row], sequences: list[Draw]) -> list[int | None]:
    """Draws from whole rows, one by one while a row is in the CPU's cache.

    Only the random numbers of lookups are made for all rows at once.
    """
    firsts = iter(
        first_uniforms([each for each in sequences if each.params.is_seed_random]).tolist()
    )
    return [
        _draw_by_lookup(row, each, next(firsts))
        if each.params.is_seed_random
        else _draw_by_race(row, each)
        for row, each in zip(rows, sequences, strict=True)
    ]


def _draw_by_lookup(row: Row, sequence: Draw, first_uniform: float) -> int | None:
    return _draw_from_row(row, sequence.params, lookup_picker(sequence, first_uniform))


def _draw_by_race(row: Row, sequence: Draw) -> int | None:
    bounds, rates = working_rows = [row_memory.take(row.size) for _ in range(2)]
    race = TokenRace(race_key(sequence), bounds, rates)
    token_id = _draw_from_row(row, sequence.params, lambda mass: race.pick(mass.weights))
    row_memory.give_back(working_rows)
    return token_id


def _draw_from_row(row: Row, params: SamplingParams, pick: Picker) -> int | None:
    """Applies temperature and filters to a whole row and draws; None without a finite logit."""
    largest_logit = row.max()
    if not np.isfinite(largest_logit):
        return None
    log_weights, weights, ahead = working_rows = [row_memory.take(row.size) for _ in range(3)]
    np.subtract(row, largest_logit, out=log_weights)
    token_id = _draw_by_weight(log_weights, weights, ahead, params, pick)
    row_memory.give_back(working_rows)
    return token_id


def _draw_by_weight(
    log_weights: Row, weights: Row, ahead: Row, params: SamplingParams, pick: Picker
) -> int:
    """Draws a token and overwrites all three rows.

    `log_weights` has the logits, of which the largest is 0.
    """
    if 0 < params.top_k < log_weights.size:
        log_weights[log_weights < np.partition(log_weights, -params.top_k)[-params.top_k]] = -np.inf
    log_weights *= np.float32(1.0 / params.temperature)
    np.exp(log_weights, out=weights)
    if params.min_p > 0.0:
        weights[weights < np.float32(params.min_p)] = 0.0
    if params.typical_p < 1.0:
        _keep_top_p(weights, params.top_p)
        share, rank = params.typical_p, _to_deviation(log_weights, weights)
    else:
        share, rank = params.top_p, weights
    is_ahead: np.ufunc = np.greater if rank is weights else np.less
    mass = ColumnSums(weights)
    needed = share * mass.total
    token_id = pick(mass)
    while share < 1.0:
        # `ahead` is 1 for the tokens that are kept before this token is.
        is_ahead(rank, rank[token_id], out=ahead)
        mass_ahead = float(np.dot(weights, ahead))
        if mass_ahead < needed or mass_ahead == 0.0:
            break
        weights *= ahead
        token_id = pick(ColumnSums(weights))
    return token_id


def _keep_top_p(weights: Row, top_p: float) -> None:
    """Sets the weights to 0 that top_p excludes."""
    if top_p == 1.0:
        return
    total = float(weights.sum())
    # All tokens below this bound together weigh less than the excluded share, so the last kept
    # token is not among them.
    candidates = weights[weights >= np.float32((1.0 - top_p) * total / weights.size)]
    descending = np.sort(candidates)[::-1]
    last_kept = int(np.searchsorted(np.cumsum(descending, dtype=np.float64), top_p * total))
    weights[weights < descending[min(last_kept, descending.size - 1)]] = 0.0


def _to_deviation(log_weights: Row, weights: Row) -> Row:
    """Replaces each log weight by its distance from the mean, see `keep_typical`."""
    np.maximum(log_weights, _NO_WEIGHT, out=log_weights)
    log_weights -= np.float32(np.dot(weights, log_weights) / weights.sum())
    return np.abs(log_weights, out=log_weights)


def _column(params: list[SamplingParams], name: str) -> NDArray[np.float64]:
    return np.array([[getattr(each, name)] for each in params], dtype=np.float64)
