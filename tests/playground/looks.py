"""Widths and colours in which pages are looked at: each once, and all pairs of them before a release."""

import pytest

_LEFT = pytest.mark.release("pages of the playground in further pairs of width and colours")
LOOKS = [
    (1280, "light"),
    (360, "dark"),
    pytest.param(1280, "dark", marks=_LEFT),
    pytest.param(360, "light", marks=_LEFT),
]
