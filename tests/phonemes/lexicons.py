"""Marks tests that read the lexicons of English."""

import pytest

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.lexicon import find_lexicons

needs_lexicons = pytest.mark.skipif(
    find_lexicons(Dialect.AMERICAN) is None,
    reason="the package misaki, which has the lexicons, supports Python < 3.13 only",
)
