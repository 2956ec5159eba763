"""The encodings of weights: layout, round trip and error."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import (
    INT8_IN_GROUPS,
    Encoding,
    Parts,
    encode_bf16,
    encode_f32,
    encode_int4,
    encode_int8,
    encode_int8_in_groups,
    int4_group_size,
    unpack_nibbles,
)


def matrix(rows: int = 16, columns: int = 256) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((rows, columns), np.float32)


def decode_int8(parts: Parts) -> NDArray[np.float32]:
    names = ("values", "zeros", "scales")
    values, zeros, scales = (parts[name].astype(np.float32) for name in names)
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
    rows = np.array(
        [[0.0, 1.0, 2.0, 4.0], [-3.0, -2.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0]], np.float32
    )
    decoded = decode_int8(encode_int8(rows))
    np.testing.assert_allclose(decoded, rows, atol=0.01)
    assert (decoded[rows == 0] == 0).all()


def test_int8_in_groups_errs_by_half_a_level_of_its_group() -> None:
    rows = matrix() * np.repeat([1.0, 30.0, 0.01, 0.0], 64).astype(np.float32)
    parts = encode_int8_in_groups(rows)
    scales = parts["scales"].astype(np.float32)
    assert scales.shape == (16, 4)
    decoded = decode(INT8_IN_GROUPS, parts).reshape(16, 4, 64)
    assert (np.abs(decoded - rows.reshape(16, 4, 64)) <= 0.501 * scales[:, :, None]).all()
    assert (decoded[:, 3] == 0).all()


def test_integers_that_the_runtime_widens_are_slow() -> None:
    slow = [
        Encoding("u4", "f32", "f32", 32),
        Encoding("i8", "f32", group_size=16),
        Encoding("u8", "f16", "f16", 64),
    ]
    quick = [
        Encoding("i4", "f16", group_size=32),
        Encoding("u4", "f32", "u8", 128),
        Encoding("u8", "f32", "u8"),
    ]
    floats = [
        Encoding("f32"),
        Encoding("nf4", "f32", group_size=64),
        Encoding("f4e2m1", "f32", group_size=16),
    ]
    assert all(encoding.is_slow_integer for encoding in slow)
    assert not any(encoding.is_slow_integer for encoding in quick + floats)


@pytest.mark.parametrize("columns", [256, 192, 96, 40])
def test_int4_errs_by_a_fraction_of_a_level(columns: int) -> None:
    rows = matrix(columns=columns)
    parts = encode_int4(rows)
    group = int4_group_size(columns)
    assert parts["scales"].shape == (16, columns // group)
    scales = np.abs(parts["scales"].astype(np.float32))[:, :, None]
    error = np.abs(decode_int4(parts) - rows).reshape(16, -1, group)
    # the error is half a level, and more in a group whose extremes are clipped
    assert (error <= 2.1 * scales).all()
    assert np.sqrt((error**2).mean()) < 0.35 * scales.mean()


def rounded_to_nearest(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Puts the extreme of each group on level -8, and rounds the other values."""
    groups = rows.reshape(-1, int4_group_size(rows.shape[1]))
    extreme = np.take_along_axis(groups, np.abs(groups).argmax(axis=1, keepdims=True), axis=1)
    scales = extreme / -8
    return np.asarray(
        (np.clip(np.rint(groups / scales), -8, 7) * scales).reshape(rows.shape), np.float32
    )


def heavy_tailed(rows: int = 16, columns: int = 256) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_t(4, (rows, columns)).astype(np.float32)


@pytest.mark.parametrize(("rows", "share"), [(matrix(64), 0.96), (heavy_tailed(64), 0.97)])
def test_int4_is_nearer_than_rounding_to_nearest(rows: NDArray[np.float32], share: float) -> None:
    searched = np.linalg.norm(decode_int4(encode_int4(rows)) - rows)
    assert searched < share * np.linalg.norm(rounded_to_nearest(rows) - rows)


def test_int4_finds_the_levels_of_rows_with_sixteen_levels() -> None:
    levels: NDArray[np.float32] = (
        np.random.default_rng(0).integers(-8, 8, (4, 64)).astype(np.float32)
    )
    levels[:, ::32] = -8
    rows = levels * np.float32(0.0625)
    np.testing.assert_array_equal(decode_int4(encode_int4(rows)), rows)


def test_int4_rows_are_encoded_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads and their blocks of rows change nothing except the order of sums."""
    rows = matrix(7, 96)
    whole = encode_int4(rows)
    monkeypatch.setattr("ouzel.backends.openvino.weights.encodings.COMPUTED_AT_ONCE", 64)
    for name, part in whole.items():
        alone = np.concatenate([encode_int4(row[None])[name] for row in rows])
        np.testing.assert_allclose(alone.astype(np.float32), part.astype(np.float32), rtol=1e-6)


def test_int4_groups_of_zeros_stay_zero() -> None:
    assert not decode_int4(encode_int4(np.zeros((2, 128), np.float32))).any()


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_int4_groups_with_a_value_that_is_not_finite_have_a_scale_of_nan(broken: float) -> None:
    """A scale of NaN lets the self-check at the start find the group."""
    rows = matrix(1, 128)
    rows[0, 3] = broken
    assert np.isnan(encode_int4(rows)["scales"]).tolist() == [[True, False]]


@pytest.mark.parametrize(("columns", "group"), [(4096, 64), (96, 32), (40, 40)])
def test_int4_group_sizes(columns: int, group: int) -> None:
    assert int4_group_size(columns) == group


def test_bf16_rounds_to_nearest_even() -> None:
    bits = np.array([[0x3F80_8000, 0x3F81_8000, 0x3F80_8001, 0x3F80_7FFF]], np.uint32)
    assert encode_bf16(bits.view(np.float32))["values"].tolist() == [
        [0x3F80, 0x3F82, 0x3F81, 0x3F80]
    ]


def test_f32_stays_as_it_is() -> None:
    np.testing.assert_array_equal(encode_f32(matrix())["values"], matrix())


def test_int8_rows_are_encoded_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = matrix(7, 96)
    whole = encode_int8(rows)
    monkeypatch.setattr("ouzel.backends.openvino.weights.encodings.COMPUTED_AT_ONCE", 64)
    for name, part in whole.items():
        alone = np.concatenate([encode_int8(row[None])[name] for row in rows])
        np.testing.assert_array_equal(alone, part)
        np.testing.assert_array_equal(encode_int8(rows)[name], part)
