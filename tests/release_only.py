"""Marks single parameters of a test to run with `--release` only."""

import pytest
from _pytest.mark import ParameterSet


def release_only(reason: str, *values: object) -> list[ParameterSet]:
    """Returns parameters that `uv run pytest` leaves out and counts under `reason`."""
    return [pytest.param(value, marks=pytest.mark.release(reason)) for value in values]
