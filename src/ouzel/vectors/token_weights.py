"""Selects and gathers the weights of tokens, the sparse vectors of bge-m3.

Reference: FlagEmbedding, inference/embedder/encoder_only/m3.py.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.tokenizer.base import Tokenizer

Weights = NDArray[np.float32]

_FIRST, _LAST = ("bos_token", "cls_token"), ("eos_token", "sep_token")
_UNUSED = ("bos_token", "cls_token", "eos_token", "pad_token", "unk_token")


class TokenWeights:
    """Knows the special tokens of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._first_ids = find_special_ids(tokenizer, _FIRST)
        self._last_ids = find_special_ids(tokenizer, _LAST)
        self._unused_ids = find_special_ids(tokenizer, _UNUSED)

    def drop_frame(self, token_ids: Sequence[int], weights: Weights) -> Weights:
        """Leaves out the weights of the special tokens at both ends of a text."""
        begin = 1 if token_ids[0] in self._first_ids else 0
        end = len(token_ids) - (1 if token_ids[-1] in self._last_ids else 0)
        return weights[begin:end]

    def gather(self, token_ids: Sequence[int], weights: Weights) -> dict[str, float]:
        """Returns the largest weight of each token by its id; special tokens and weights of 0 are
        left out.
        """
        largest: dict[str, float] = {}
        for token_id, weight in zip(token_ids, weights.tolist(), strict=True):
            name = str(token_id)
            if token_id not in self._unused_ids and weight > largest.get(name, 0):
                largest[name] = weight
        return largest


def find_special_ids(tokenizer: Tokenizer, roles: Sequence[str]) -> frozenset[int]:
    """Returns the ids of the tokenizer's special tokens with these roles (`bos_token`, ...)."""
    named = (tokenizer.special_tokens.get(role) for role in roles)
    ids = (tokenizer.token_id(name) for name in named if name)
    return frozenset(token_id for token_id in ids if token_id is not None)
