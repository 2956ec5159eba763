"""Counts the tokens of a sequence one by one, for the penalties."""

import numpy as np
from numpy.typing import NDArray


class TokenCounts:
    """Counts how often the output has each distinct token of prompt and output."""

    def __init__(self, prompt_token_ids: list[int]) -> None:
        distinct = list(dict.fromkeys(prompt_token_ids))
        self._slots = {token_id: slot for slot, token_id in enumerate(distinct)}
        self._token_ids = np.zeros(max(64, 2 * len(distinct)), dtype=np.int64)
        self._token_ids[: len(distinct)] = distinct
        self._counts = np.zeros(self._token_ids.size, dtype=np.float32)
        self._num_output_tokens = 0

    @property
    def token_ids(self) -> NDArray[np.int64]:
        return self._token_ids[: len(self._slots)]

    @property
    def output_counts(self) -> NDArray[np.float32]:
        """Returns the counts parallel to `token_ids`; 0 for tokens of the prompt only."""
        return self._counts[: len(self._slots)]

    def follow(self, output_token_ids: list[int]) -> None:
        """Counts the tokens added to the output since the last call."""
        for token_id in output_token_ids[self._num_output_tokens :]:
            slot = self._slots.setdefault(token_id, len(self._slots))
            if slot == self._token_ids.size:
                self._token_ids = np.concatenate([self._token_ids, np.zeros_like(self._token_ids)])
                self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._token_ids[slot] = token_id
            self._counts[slot] += 1
        self._num_output_tokens = len(output_token_ids)
