"""Names the two dialects of English that Kokoro speaks."""

from enum import Enum


class Dialect(Enum):
    """The value begins the names of the lexicons' files."""

    AMERICAN = "us"
    BRITISH = "gb"
