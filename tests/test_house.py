"""`tools/house/measure.py` finds no broken limit: import cycles, sizes of files and functions."""

from tools.house.measure import broken_limits, read_sources


def test_no_limit_is_broken() -> None:
    assert broken_limits(read_sources()) == []
