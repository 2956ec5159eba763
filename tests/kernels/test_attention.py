"""Compares the attention of each level with numpy, and bit for bit with other levels."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.kernels.attention import (
    CACHES,
    UNWRITTEN,
    Cache,
    CacheName,
    Context,
    Heads,
    NewRows,
    Refused,
    attend_in_float64,
    make_rows,
)
from tests.kernels.library import Floats, needs_library, supported_levels

pytestmark = needs_library

HEADS = (
    Heads(num_heads=2, num_kv_heads=2, size=32),
    Heads(num_heads=4, num_kv_heads=2, size=64),
    Heads(num_heads=3, num_kv_heads=1, size=96),
    Heads(num_heads=10, num_kv_heads=2, size=128),
    Heads(num_heads=14, num_kv_heads=1, size=256),
    Heads(num_heads=1, num_kv_heads=1, size=512),
)
NUM_ROWS = (1, 33, 1, 7, 250, 1, 2, 40, 1)  # rows of each call: 336 tokens in all
NUM_BLOCKS = 11  # enough for a sequence of these rows
IN_BOTH_CACHES = pytest.mark.parametrize("in_cache", ["f16", "u8"])


@pytest.mark.parametrize("heads", HEADS, ids=lambda heads: f"{heads.num_heads}x{heads.size}")
@pytest.mark.parametrize("window", [0, 50])
@IN_BOTH_CACHES
def test_attention_is_that_of_numpy(
    level: str, heads: Heads, window: int, in_cache: CacheName
) -> None:
    sinks = np.random.default_rng(0).standard_normal(heads.num_heads).astype(np.float32)
    for with_sinks in (None, sinks):
        compare_with_numpy(level, replace(heads, window=window, sinks=with_sinks, cache=in_cache))


@pytest.mark.parametrize("softcap", [0.0, 1.5])
@pytest.mark.parametrize("in_cache", CACHES)
def test_attention_with_a_soft_cap_or_in_f32_is_that_of_numpy(
    level: str, in_cache: CacheName, softcap: float
) -> None:
    for heads, window in ((HEADS[1], 0), (HEADS[4], 50)):
        compare_with_numpy(level, replace(heads, window=window, softcap=softcap, cache=in_cache))


def compare_with_numpy(level: str, heads: Heads) -> None:
    """Computes a sequence in several calls, and compares the rows of each call."""
    random = np.random.default_rng(0)
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    for count in NUM_ROWS:
        rows = make_rows(heads, count, random)
        attended = cache.attend(level, [(context, rows)])
        exact = attend_in_float64(heads, context, rows.queries)
        np.testing.assert_allclose(attended, exact, rtol=0, atol=3e-6 * abs(exact).max())


@pytest.mark.parametrize(
    ("window", "softcap", "in_cache"),
    [
        *product([0, 70], [0.0], ["f16", "u8"]),
        *product([70], [2.0], CACHES),
    ],
)
def test_a_row_has_the_same_bits_in_any_company_on_any_level(
    window: int, softcap: float, in_cache: CacheName
) -> None:
    random = np.random.default_rng(1)
    heads = Heads(
        num_heads=6, num_kv_heads=2, size=64, window=window, softcap=softcap, cache=in_cache
    )
    sequences = [make_rows(heads, 336, random) for _ in range(3)]
    alone = [attend_in_pieces("avx2", heads, [rows], [[1] * 336]) for rows in sequences]
    for name in supported_levels():
        for sizes in ([336], list(NUM_ROWS), [256, 80], [5] * 67 + [1]):
            for rows, expected in zip(sequences, alone, strict=True):
                assert np.array_equal(attend_in_pieces(name, heads, [rows], [sizes]), expected)
        together = attend_in_pieces(
            name, heads, sequences, [[1] * 8 + [328], [40] * 8 + [16], [0] + [42] * 8]
        )
        assert np.array_equal(together, np.concatenate(alone))


def attend_in_pieces(
    level: str, heads: Heads, sequences: list[NewRows], sizes: list[list[int]]
) -> Floats:
    """Computes sequences together, each in pieces of its own sizes; returns the rows of all."""
    cache = Cache(heads, NUM_BLOCKS * len(sequences))
    contexts = [
        Context([*range(NUM_BLOCKS * number, NUM_BLOCKS * (number + 1))])
        for number in range(len(sequences))
    ]
    answers: list[list[Floats]] = [[] for _ in sequences]
    for pieces in zip(*sizes, strict=True):
        work = [
            (context, rows[slice(context.num_tokens, context.num_tokens + size)])
            for context, rows, size in zip(contexts, sequences, pieces, strict=True)
        ]
        attended = cache.attend(level, work)
        ends = np.cumsum(pieces)
        for answer, part in zip(answers, np.split(attended, ends[:-1]), strict=True):
            answer.append(part)
    return np.concatenate([part for answer in answers for part in answer])


def test_the_cache_holds_keys_and_values_in_f16(level: str) -> None:
    random = np.random.default_rng(2)
    heads = Heads(num_heads=4, num_kv_heads=2, size=64)
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    for count in (45, 1, 60):
        cache.attend(level, [(context, make_rows(heads, count, random))])
    for cached, rows in zip(cache.read(context), (context.keys, context.values), strict=True):
        assert np.array_equal(cached, np.array(rows).astype(np.float16).astype(np.float32))
    halves = [each.view(np.uint16) for each in (cache.keys, cache.values)]
    num_unwritten = sum(int((each == UNWRITTEN * 0x101).sum()) for each in halves)
    assert num_unwritten == 2 * (NUM_BLOCKS * 32 - context.num_tokens) * 2 * 64


def test_the_cache_holds_keys_and_values_in_f32(level: str) -> None:
    random = np.random.default_rng(12)
    heads = Heads(num_heads=4, num_kv_heads=2, size=64, cache="f32")
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    for count in (45, 1, 60):
        cache.attend(level, [(context, make_rows(heads, count, random))])
    for cached, rows in zip(cache.read(context), (context.keys, context.values), strict=True):
        assert np.array_equal(cached, np.array(rows))


@pytest.mark.parametrize("factor", [1e-3, 1.0, 10.0])
def test_a_soft_cap_is_exact_for_small_and_large_products(level: str, factor: float) -> None:
    random = np.random.default_rng(13)
    heads = replace(HEADS[1], softcap=3.0, cache="f32")
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 40, random)
    rows.queries[:] *= factor
    attended = cache.attend(level, [(context, rows)])
    exact = attend_in_float64(heads, context, rows.queries)
    np.testing.assert_allclose(attended, exact, rtol=0, atol=3e-6 * abs(exact).max())


def test_huge_products_all_become_the_soft_cap(level: str) -> None:
    random = np.random.default_rng(14)
    heads = replace(HEADS[0], softcap=50.0)
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 40, random)
    rows.queries[:], rows.keys[:] = 1e36, abs(rows.keys)
    attended = cache.attend(level, [(context, rows)])
    means = np.cumsum(rows.values, axis=0) / np.arange(1, 41)[:, None, None]
    np.testing.assert_allclose(attended, means, rtol=0, atol=2e-3)  # values are f16


def test_a_token_in_u8_does_not_depend_on_other_tokens(level: str) -> None:
    """The bytes of the cache are the same, whether its tokens come one by one or together."""
    random = np.random.default_rng(8)
    heads = Heads(num_heads=2, num_kv_heads=2, size=64, cache="u8")
    rows, block_ids = make_rows(heads, 70, random), shuffled_blocks(random)
    written = []
    for sizes in ([70], [1] * 70, [31, 2, 37]):
        context, cache = Context(block_ids), Cache(heads, NUM_BLOCKS)
        for size in sizes:
            first = context.num_tokens
            cache.attend(level, [(context, rows[slice(first, first + size)])])
        written.append(cache)
    for cache in written[1:]:
        assert np.array_equal(cache.keys, written[0].keys)
        assert np.array_equal(cache.values, written[0].values)


def test_numbers_beyond_f16_become_the_largest_number(level: str) -> None:
    random = np.random.default_rng(7)
    heads = HEADS[1]
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 12, random)
    before = cache.attend(level, [(context, rows[slice(0, 9)])])
    rows.keys[9], rows.values[9] = 1e5, -1e5
    context, cache = Context(context.block_ids), Cache(heads, NUM_BLOCKS)
    attended = cache.attend(level, [(context, rows)])
    keys, values = cache.read(context)
    assert (keys[9] == 65504).all() and (values[9] == -65504).all()
    assert np.array_equal(attended[:9], before) and np.isfinite(attended).all()


def test_u8_holds_numbers_beyond_f16(level: str) -> None:
    """The scale of a line is an f16 number, so numbers may be 127 times as large."""
    random = np.random.default_rng(9)
    heads = replace(HEADS[1], cache="u8")
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 12, random)
    rows.keys[:] *= 1e-6  # otherwise one token would have all weight
    rows.values[:] *= 1e6
    attended = cache.attend(level, [(context, rows)])
    exact = attend_in_float64(heads, context, rows.queries)
    np.testing.assert_allclose(attended, exact, rtol=0, atol=3e-6 * abs(exact).max())


def test_lines_of_zeros_and_of_the_smallest_numbers_are_zeros_in_u8(level: str) -> None:
    random = np.random.default_rng(10)
    heads = replace(HEADS[0], cache="u8")
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 3, random)
    rows.values[:, 0], rows.values[:, 1] = 0, 1e-38
    assert not cache.attend(level, [(context, rows)]).any()


def test_numbers_beyond_u8_become_the_largest_number(level: str) -> None:
    random = np.random.default_rng(11)
    heads = replace(HEADS[1], cache="u8")
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 1, random)
    rows.values[:] = np.inf
    attended = cache.attend(level, [(context, rows)])
    assert (attended == attended[0, 0, 0]).all() and 8e6 < attended[0, 0, 0] < 8.4e6


def test_a_layer_can_read_the_cache_of_another_layer(level: str) -> None:
    random = np.random.default_rng(3)
    heads = Heads(num_heads=4, num_kv_heads=2, size=64)
    context, cache = Context(shuffled_blocks(random)), Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 40, random)
    written = cache.attend(level, [(context, rows)])
    keys, values = cache.keys.copy(), cache.values.copy()
    others = NewRows(rows.queries, rows.keys + 1, rows.values - 1)
    assert np.array_equal(cache.attend(level, [(context, others)], writes=False), written)
    assert np.array_equal(cache.keys, keys) and np.array_equal(cache.values, values)


def test_rows_of_no_sequence_are_zeros(level: str) -> None:
    random = np.random.default_rng(4)
    heads = HEADS[0]
    cache = Cache(heads, NUM_BLOCKS)
    work = [(Context([3]), make_rows(heads, 5, random))]
    attended = cache.attend(level, work, num_spare_rows=2)
    assert not attended[5:].any() and attended[:5].all()


def test_blocks_before_the_window_need_not_exist(level: str) -> None:
    random = np.random.default_rng(5)
    heads = replace(HEADS[1], window=40)
    context, cache = Context(list(range(NUM_BLOCKS))), Cache(heads, NUM_BLOCKS)
    cache.attend(level, [(context, make_rows(heads, 300, random))])
    rows = make_rows(heads, 1, random)
    context.block_ids[:8] = [-1] * 8  # the window begins in block 8
    attended = cache.attend(level, [(context, rows)])
    exact = attend_in_float64(heads, context, rows.queries)
    np.testing.assert_allclose(attended, exact, rtol=0, atol=3e-6)


def test_numbers_that_do_not_exist_are_refused(level: str) -> None:
    heads = HEADS[0]
    cache = Cache(heads, NUM_BLOCKS)
    rows = make_rows(heads, 33, np.random.default_rng(6))
    for block_ids in ([0], [0, NUM_BLOCKS], [-1, 1]):  # too few, or not in the cache
        with pytest.raises(Refused) as refused:
            cache.attend(level, [(Context(block_ids), rows)])
        assert refused.value.status == 2


def shuffled_blocks(random: np.random.Generator) -> list[int]:
    return [int(number) for number in random.permutation(NUM_BLOCKS)]


@pytest.mark.parametrize("window", [0, 50])
@pytest.mark.parametrize("in_cache", CACHES)
def test_two_way_tokens_see_each_other(level: str, window: int, in_cache: CacheName) -> None:
    """Spans of all lengths lie beside other tokens, and in the second call of a sequence."""
    random = np.random.default_rng(2)
    for sizes in (HEADS[1], HEADS[3]):
        heads = replace(sizes, window=window, cache=in_cache, softcap=2.0)
        contexts = [Context(list(blocks)) for blocks in np.arange(2 * NUM_BLOCKS).reshape(2, -1)]
        cache = Cache(heads, 2 * NUM_BLOCKS)
        for count, span in (
            (1, range(1)),
            (40, range(4, 38)),
            (130, range(41, 171)),
            (9, range(0)),
        ):
            work = [(each, make_rows(heads, count, random)) for each in contexts]
            past = contexts[0].num_tokens
            begins = [
                span.start if token in span else -1 for token in range(past, past + count)
            ] + [-1] * count
            attended = cache.attend(level, work, num_spare_rows=1, two_way_begins=begins)
            for number, (context, rows) in enumerate(work):
                exact = attend_in_float64(
                    heads, context, rows.queries, span if number == 0 else range(0)
                )
                own = attended[number * count : (number + 1) * count]
                np.testing.assert_allclose(own, exact, rtol=0, atol=3e-6 * abs(exact).max())


@pytest.mark.parametrize("window", [0, 20])
def test_the_rest_of_a_span_sees_the_tokens_of_earlier_calls(level: str, window: int) -> None:
    random = np.random.default_rng(3)
    heads = replace(HEADS[1], window=window)
    context, cache = Context(list(range(NUM_BLOCKS))), Cache(heads, NUM_BLOCKS)
    cache.attend(level, [(context, make_rows(heads, 64, random))])
    rows = make_rows(heads, 36, random)

    attended = cache.attend(level, [(context, rows)], two_way_begins=[0] * 36)

    exact = attend_in_float64(heads, context, rows.queries, range(100))
    np.testing.assert_allclose(attended, exact, rtol=0, atol=3e-6 * abs(exact).max())


@pytest.mark.parametrize(
    "begins",
    [
        (-1, 6, 6, 6),  # a begin after its first token
        (-1, 4, 4, 4),  # a begin before its first token
        (5, 5, 5, 5),
        (-2, -1, -1, -1),
        (0, 0, -1, 0),  # tokens between two parts of a span
        (0, 1, 1, 1),
    ],
)
def test_spans_that_do_not_hold_together_are_refused(level: str, begins: tuple[int, ...]) -> None:
    """The numbers belong to the tokens 4 to 7 of a sequence."""
    random = np.random.default_rng(4)
    context, cache = Context([0]), Cache(HEADS[0], 1)
    cache.attend(level, [(context, make_rows(HEADS[0], 4, random))])

    with pytest.raises(Refused):
        cache.attend(level, [(context, make_rows(HEADS[0], 4, random))], two_way_begins=begins)
