"""Represents a text, or a pair of texts, as tokens for the model."""

from dataclasses import dataclass

from ouzel.types.engine_request import MediaInput


@dataclass(frozen=True, slots=True)
class EncodedText:
    token_ids: list[int]  # never empty, and at most as many as the model takes
    # tokens before the second text of a pair; all tokens if there is none or the model has no marks
    second_begin: int
    task: int = 0  # number of the model's adapter for the task of the text; 0: none
    # Expansion tokens at the end, which the other tokens do not attend to.
    num_unseen: int = 0
    # Whether each token has a vector, for models with a vector of each token; None: all have.
    kept: tuple[bool, ...] | None = None
    images: tuple[MediaInput, ...] = ()  # ordered by their tokens
