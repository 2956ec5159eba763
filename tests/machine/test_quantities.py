"""Sizes and counts are written for people, without exponents."""

import pytest

from ouzel.machine.quantities import format_count, format_size


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (1010 * 2**20, "1010 MiB"),
        (2**30 - 1, "1024 MiB"),
        (2**30, "1 GiB"),
        (5.24 * 2**30, "5.24 GiB"),
        (1200 * 2**30, "1200 GiB"),
    ],
)
def test_a_size_has_a_unit_and_no_exponent(num_bytes: float, text: str) -> None:
    assert format_size(int(num_bytes)) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(999, "999"), (1500, "1.5 K"), (999_999_999, "1000 M"), (1_540_000_000_000, "1540 B")],
)
def test_a_count_has_a_unit_and_no_exponent(number: int, text: str) -> None:
    assert format_count(number) == text
