"""Clients may send token ids of another tokenizer, which give wrong vectors and no error: the log says so, once.

LangChain's OpenAIEmbeddings is the common case. Ids of this model's tokenizer come out again when their text is
tokenized. Ids of another one mostly do not.
"""

import logging
from collections.abc import Sequence
from itertools import count

from ouzel.tokenizer.base import Tokenizer

_MAX_CHECKS = 64  # of inputs; a client whose first ones are right goes on so
# tokens at each end of a text that was cut between tokens, which may be others by themselves
_NUM_AT_EDGES = 3

logger = logging.getLogger(__name__)


class ForeignIds:
    """Checks the first inputs of token ids; any thread may call it."""

    def __init__(self, tokenizer: Tokenizer, *, lowers_case: bool) -> None:
        self._tokenizer = tokenizer
        self._lowers_case = lowers_case
        self._numbers = count()
        self._is_done = False

    def check(self, token_ids: Sequence[int]) -> None:
        if self._is_done:
            return
        is_last = next(self._numbers) >= _MAX_CHECKS - 1
        is_foreign = not self._come_out_again(token_ids)
        self._is_done = self._is_done or is_foreign or is_last
        if is_foreign:
            logger.warning(
                "an input of token ids is no text of this model's tokenizer: if the client has another tokenizer, its "
                "vectors are wrong (LangChain's OpenAIEmbeddings needs check_embedding_ctx_length=False); "
                "said once"
            )

    def _come_out_again(self, token_ids: Sequence[int]) -> bool:
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
        return not inner or _holds(again, inner)  # a short input says nothing


def _holds(token_ids: list[int], part: list[int]) -> bool:
    """Tells whether the part stands somewhere in the list, in one piece."""
    starts = range(len(token_ids) - len(part) + 1)
    return any(
        token_ids[start] == part[0] and token_ids[start : start + len(part)] == part
        for start in starts
    )
