"""The limits that the house keeps: import cycles, and the sizes of files and functions (`tools/house/measure.py`)."""

from tools.house.measure import broken_limits, read_sources


def test_no_limit_is_broken() -> None:
    assert broken_limits(read_sources()) == []
