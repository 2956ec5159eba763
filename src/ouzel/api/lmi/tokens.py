"""Writes tokens as LMI does, or as text-generation-inference (TGI) does."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.generation import ServedModel
from ouzel.types.step_output import PositionLogprobs
from ouzel.wire.logprobs import LEAST_LOGPROB


class ShownToken(msgspec.Struct, frozen=True):
    position: PositionLogprobs
    text: str


class Token(msgspec.Struct):
    id: int
    text: str
    log_prob: float | UnsetType | None = UNSET
    special_token: bool | UnsetType = UNSET  # present only if true
    # TGI's names, here and in the next field
    logprob: float | UnsetType | None = UNSET
    special: bool | UnsetType = UNSET


class TokenWriter:
    def __init__(self, model: ServedModel, *, is_tgi: bool, num_top_tokens: int) -> None:
        self._tokenizer = model.tokenizer
        self._is_tgi = is_tgi
        self._num_top_tokens = num_top_tokens

    def token(self, shown: ShownToken) -> Token:
        sampled = shown.position.sampled
        return self._write(sampled.token_id, shown.text, sampled.logprob)

    def top_tokens(self, shown: ShownToken) -> list[Token]:
        """Returns the most likely tokens at the token's position, most likely first."""
        return [
            self._write(entry.token_id, self._tokenizer.token_text(entry.token_id), entry.logprob)
            for entry in shown.position.top[: self._num_top_tokens]
        ]

    def prefill(self, first_token_id: int, positions: Sequence[PositionLogprobs]) -> list[Token]:
        """Returns the prompt's tokens. The first token has no log probability."""
        entries = [(position.sampled.token_id, position.sampled.logprob) for position in positions]
        return [
            self._write(token_id, self._tokenizer.token_text(token_id), logprob)
            for token_id, logprob in ((first_token_id, None), *entries)
        ]

    def _write(self, token_id: int, text: str, logprob: float | None) -> Token:
        finite = None if logprob is None else max(logprob, LEAST_LOGPROB)
        is_special = token_id in self._tokenizer.special_token_ids
        if self._is_tgi:
            return Token(token_id, text, logprob=finite, special=is_special)
        return Token(token_id, text, finite, is_special or UNSET)
