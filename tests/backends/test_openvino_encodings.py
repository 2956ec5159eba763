"""Encodings of weights: layout, round trip and error."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import (
    Parts,
    encode_bf16,
    encode_f32,
    encode_int4,
    encode_int8,
    int4_group_size,
    unpack_nibbles,
)


def matrix(rows: int = 16, columns: int = 256) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((rows, columns), np.float32)


def decode_int8(parts: Parts) -> NDArray[np.float32]:
    values, zeros, scales = (parts[name].astype(np.float32) for name in ("values", "zeros", "scales"))
    return np.asarray((values - zeros) * scales, np.float32)


def decode_int4(parts: Parts) -> NDArray[np.float32]:
    packed, scales = parts["values"].astype(np.uint8), parts["scales"].astype(np.float32)
    levels = unpack_nibbles(packed).astype(np.int16)
    levels = np.where(levels > 7, levels - 16, levels).astype(np.float32)
    grouped = levels.reshape(len(levels), scales.shape[1], -1)
    return np.asarray((grouped * scales[:, :, None]).reshape(levels.shape), np.float32)


def test_int8_errs_by_half_a_level_at_most() -> None:
    rows = matrix()
    parts = encode_int8(rows)
    assert np.abs(decode_int8(parts) - rows).max() <= 0.501 * parts["scales"].max()


def test_int8_keeps_zero_exactly_and_one_sided_rows_close() -> None:
    rows = np.array([[0.0, 1.0, 2.0, 4.0], [-3.0, -2.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0]], np.float32)
    decoded = decode_int8(encode_int8(rows))
    np.testing.assert_allclose(decoded, rows, atol=0.01)
    assert (decoded[rows == 0] == 0).all()


@pytest.mark.parametrize("columns", [256, 192, 96, 40])
def test_int4_errs_by_a_level_at_most(columns: int) -> None:
    rows = matrix(columns=columns)
    parts = encode_int4(rows)
    group = int4_group_size(columns)
    assert parts["scales"].shape == (16, columns // group)
    largest = np.abs(parts["scales"].astype(np.float32))[:, :, None]
    error = np.abs(decode_int4(parts) - rows).reshape(16, -1, group)
    # Half a level, or one at the end of the range that has a level less; and the rounding of the scale itself.
    assert (error <= 1.01 * largest).all()
    assert np.sqrt((error**2).mean()) < 0.35 * largest.mean()


def test_int4_groups_of_zeros_stay_zero() -> None:
    assert not decode_int4(encode_int4(np.zeros((2, 128), np.float32))).any()


@pytest.mark.parametrize(("columns", "group"), [(4096, 128), (192, 64), (96, 32), (40, 40)])
def test_int4_group_sizes(columns: int, group: int) -> None:
    assert int4_group_size(columns) == group


def test_bf16_rounds_to_nearest_even() -> None:
    bits = np.array([[0x3F80_8000, 0x3F81_8000, 0x3F80_8001, 0x3F80_7FFF]], np.uint32)
    assert encode_bf16(bits.view(np.float32))["values"].tolist() == [[0x3F80, 0x3F82, 0x3F81, 0x3F80]]


def test_f32_stays_as_it_is() -> None:
    np.testing.assert_array_equal(encode_f32(matrix())["values"], matrix())
