"""Parameters of tests that run with `--release` only, beside parameters of the same test that run each time."""

import pytest
from _pytest.mark import ParameterSet


def release_only(reason: str, *values: object) -> list[ParameterSet]:
    """Returns a parameter for each value, which `uv run pytest` leaves out and counts under the reason."""
    return [pytest.param(value, marks=pytest.mark.release(reason)) for value in values]
