"""Defines the interface of the model that makes vectors of texts."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
TextKind = Literal["query", "document"]


class Embedder(Protocol):
    """Makes vectors of length 1, so that the product of two vectors is their similarity."""

    def choose_model(self) -> str:
        """Returns the name of the model for new vector stores.

        Raises InvalidRequest if the server has no model for vectors.
        """
        ...

    async def max_tokens(self, model: str) -> int:
        """Returns how many tokens of a text the model reads, without special tokens."""
        ...

    async def count_tokens(self, model: str, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, without special tokens."""
        ...

    async def embed(
        self, model: str, texts: Sequence[str], kind: TextKind, *, key_id: str | None
    ) -> Vectors:
        """Returns a vector of each text, [texts, size]; the model's prompts precede the texts.

        Longer texts are cut. Raises TryLater if the model takes no requests now, and OuzelError.
        """
        ...
