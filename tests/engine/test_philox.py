"""Tests the random numbers of a draw."""

import numpy as np
import pytest

from ouzel.engine.sampling.philox import philox4x32, random_bits, uniform, uniforms


def test_philox_known_answers() -> None:
    """The answers are from the authors' Random123 distribution, file kat_vectors."""
    counters = np.array([[0, 0xFFFFFFFF, 0x243F6A88], [0, 0xFFFFFFFF, 0x85A308D3]], dtype=np.uint64)
    rest = np.array([[0, 0xFFFFFFFF, 0x13198A2E], [0, 0xFFFFFFFF, 0x03707344]], dtype=np.uint64)
    keys = np.array([[0, 0xFFFFFFFF, 0xA4093822], [0, 0xFFFFFFFF, 0x299F31D0]], dtype=np.uint64)

    words = philox4x32(np.concatenate([counters, rest]), keys)

    assert [f"{word:08x}" for word in words[:, 0].tolist()] == [
        "6627e8d5",
        "e169c58d",
        "bc57ac4c",
        "9b00dbd8",
    ]
    assert [f"{word:08x}" for word in words[:, 1].tolist()] == [
        "408f276d",
        "41c83b0e",
        "a20bc7c6",
        "6d5451fd",
    ]
    assert [f"{word:08x}" for word in words[:, 2].tolist()] == [
        "d16cfe09",
        "94fdcceb",
        "5001e420",
        "24126ea1",
    ]


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, -(2**63), 0x123456789ABCDEF])
def test_a_single_uniform_equals_the_batchs_uniform(seed: int) -> None:
    rows = [
        (index, position, draw)
        for index in (0, 3)
        for position in (0, 70_000)
        for draw in (1, 2, 900)
    ]
    indices, positions, draws = np.array(rows, dtype=np.int64).T

    batch = uniforms(np.full(len(rows), seed, dtype=np.int64), indices, positions, draws)

    assert [uniform(seed, *row) for row in rows] == batch.tolist()


def test_random_bits_use_counters_that_no_uniform_uses() -> None:
    counters = np.array([[70_000], [3], [0], [1]], dtype=np.uint64)
    words = philox4x32(counters, np.array([[0x89ABCDEF], [0x1234567]], dtype=np.uint64))

    assert random_bits(0x123456789ABCDEF, 3, 70_000) == int(words[0, 0]) << 32 | int(words[1, 0])


def test_uniforms_differ_by_seed_choice_position_and_draw() -> None:
    zero = np.zeros(1, dtype=np.int64)
    draws = [
        uniforms(zero + a, zero + b, zero + c, zero + d)[0]
        for a in (0, -1)
        for b in (0, 1)
        for c in (0, 1)
        for d in (0, 1)
    ]

    assert len(set(draws)) == 16
    assert all(0 <= each < 1 for each in draws)
