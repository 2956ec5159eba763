"""A text, or a pair of texts, as the model reads it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EncodedText:
    token_ids: list[int]  # at least one, and no more than the model takes
    second_begin: int  # tokens before the second text of a pair; all of them without one, or where the model knows none
