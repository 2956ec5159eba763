"""Declares the part that turns texts into phonemes."""

from typing import Protocol


class Phonemizer(Protocol):
    """Turns texts of one language into phonemes. Threads may share it."""

    def to_phonemes(self, text: str) -> str:
        """Returns the phonemes of a sentence with its marks; an empty text if it has none."""
        ...
