"""Warns once about clients whose token ids are from another tokenizer: the vectors are wrong, but
there is no error.

LangChain's OpenAIEmbeddings is the common case. Ids of this model's tokenizer are the same after
decoding and encoding; ids of another tokenizer mostly are not.
"""

import logging
from collections.abc import Sequence
from itertools import count

from ouzel.tokenizer.base import Tokenizer

_MAX_CHECKS = 64  # inputs; a client whose first inputs are right is assumed to go on so
# Tokens at each end that may change, because a client may have cut the text between any tokens.
_NUM_AT_EDGES = 3

logger = logging.getLogger(__name__)


class ForeignIds:
    """Checks whether inputs of token ids are from the model's tokenizer. It is thread-safe."""

    def __init__(self, tokenizer: Tokenizer, *, lowers_case: bool) -> None:
        self._tokenizer = tokenizer
        self._lowers_case = lowers_case
        self._numbers = count()
        self._is_done = False

    def check(self, token_ids: Sequence[int]) -> None:
        if self._is_done:
            return
        is_last = next(self._numbers) >= _MAX_CHECKS - 1
        is_foreign = not self._survive_decoding(token_ids)
        self._is_done = self._is_done or is_foreign or is_last
        if is_foreign:
            logger.warning(
                "an input of token ids does not match this model's tokenizer; if the client uses "
                "another tokenizer, its vectors are wrong (LangChain's OpenAIEmbeddings needs "
                "check_embedding_ctx_length=False); this is logged once"
            )

    def _survive_decoding(self, token_ids: Sequence[int]) -> bool:
        if max(token_ids, default=0) >= self._tokenizer.vocab_size:
            return False
        text = self._tokenizer.decode(token_ids, skip_special_tokens=True)
        again = self._tokenizer.encode(
            text.lower() if self._lowers_case else text, add_special_tokens=False
        )
        plain = [
            token_id for token_id in token_ids if token_id not in self._tokenizer.special_token_ids
        ]
        inner = plain[_NUM_AT_EDGES:-_NUM_AT_EDGES]
        return not inner or _contains(again, inner)  # a short input proves nothing


def _contains(token_ids: list[int], part: list[int]) -> bool:
    """Tells whether `part` occurs in the list in one piece."""
    starts = range(len(token_ids) - len(part) + 1)
    return any(
        token_ids[start] == part[0] and token_ids[start : start + len(part)] == part
        for start in starts
    )
