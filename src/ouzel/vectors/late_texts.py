"""Encodes queries and documents for a model with a vector of each token.

A marker stands behind the first token. A query is filled up with expansion tokens; words of the
skip list have no vector in a document. Reference: PyLate, models/colbert.py.
"""

from dataclasses import replace

from ouzel.checkpoint.late_interaction import LateInteraction
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import ModelLoadError
from ouzel.generation import ServedModel
from ouzel.tokenizer.base import Tokenizer
from ouzel.vectors.encoded_text import EncodedText
from ouzel.vectors.pieces import PieceLimit
from ouzel.vectors.text_encoder import TextEncoder, TextLimit
from ouzel.vectors.token_weights import find_special_ids


class LateTexts:
    """Encodes the texts of a model with `SentenceFiles.interaction`.

    Raises InvalidRequest for a text that is empty or too long.
    """

    def __init__(
        self, model: ServedModel, encoder: TextEncoder, files: SentenceFiles, facts: LateInteraction
    ) -> None:
        tokenizer = model.tokenizer
        self._encoder, self._facts = encoder, facts
        self._prompts = files.query_prompt.text, files.document_prompt.text
        self._markers = tuple(
            tokenizer.token_id(marker) if marker else None
            for marker in (facts.query_marker, facts.document_marker)
        )
        self._expansion_id = find_expansion_id(facts, tokenizer)
        self._skipped_ids = _find_ids(tokenizer, facts.skipped_words)
        self._first_ids = find_special_ids(tokenizer, ("bos_token", "cls_token"))
        self._query_len = min(facts.query_len or encoder.max_tokens, encoder.max_tokens)
        self._document_len = min(facts.document_len or encoder.max_tokens, encoder.max_tokens)

    def query(
        self, text: str, limit: TextLimit, *, field: str, truncate: bool | None = None
    ) -> EncodedText:
        """Encodes a query. Models that cut queries do so unless `truncate` is false."""
        cuts = limit.cuts or (self._facts.cuts_queries and truncate is not False)
        limit = _shorten(replace(limit, cuts=cuts), self._query_len - self._num_markers(0))
        plain = self._encoder.text(self._prompts[0] + text, limit, field=field)
        token_ids = self._mark(plain.token_ids, 0)
        num_more = min(self._facts.expanded_len, self._query_len) - len(token_ids)
        if num_more <= 0 or self._expansion_id is None:
            return self._keep_query(token_ids, num_unseen=0)
        num_unseen = 0 if self._facts.attends_to_expansion else num_more
        token_ids += [self._expansion_id] * num_more
        return self._keep_query(token_ids, num_unseen=num_unseen)

    def document(self, text: str, limit: TextLimit, *, field: str) -> EncodedText:
        limit = _shorten(limit, self._document_len - self._num_markers(1))
        plain = self._encoder.text(self._prompts[1] + text, limit, field=field)
        return self._finish_document(plain)

    def document_pieces(self, text: str, limit: PieceLimit, *, field: str) -> list[EncodedText]:
        """Encodes a document in pieces, each as long as the longest document."""
        limit = replace(limit, max_tokens=self._document_len - self._num_markers(1))
        pieces = self._encoder.text_pieces(self._prompts[1], text, limit, field=field)
        return [self._finish_document(piece) for piece in pieces]

    def plain(self, text: EncodedText) -> EncodedText:
        """Prepares a text that is neither a query nor a document."""
        return replace(text, kept=self._keep(text.token_ids, frozenset()))

    def _num_markers(self, side: int) -> int:
        return 0 if self._markers[side] is None else 1

    def _mark(self, token_ids: list[int], side: int) -> list[int]:
        marker = self._markers[side]
        return list(token_ids) if marker is None else [token_ids[0], marker, *token_ids[1:]]

    def _keep_query(self, token_ids: list[int], *, num_unseen: int) -> EncodedText:
        kept = self._keep(token_ids, frozenset())
        return EncodedText(token_ids, len(token_ids), num_unseen=num_unseen, kept=kept)

    def _finish_document(self, plain: EncodedText) -> EncodedText:
        token_ids = self._mark(plain.token_ids, 1)
        kept = self._keep(token_ids, self._skipped_ids)
        return EncodedText(token_ids, len(token_ids), kept=kept)

    def _keep(self, token_ids: list[int], skipped: frozenset[int]) -> tuple[bool, ...]:
        kept = [token_id not in skipped for token_id in token_ids]
        if not self._facts.keeps_first and token_ids[0] in self._first_ids:
            kept[0] = False
        return tuple(kept)


def check_tokens(files: SentenceFiles, tokenizer: Tokenizer, vocab_size: int, name: str) -> None:
    """Raises ModelLoadError if the tokenizer of the model `name` lacks a token that its files of
    late interaction need.
    """
    facts = files.interaction
    if facts is None:
        return
    for marker in (facts.query_marker, facts.document_marker):
        token_id = tokenizer.token_id(marker) if marker else 0
        if token_id is None or token_id >= vocab_size:
            raise ModelLoadError(
                f"{name}: the marker {marker!r} of queries or documents must be a token of "
                "tokenizer.json with a row in the embeddings"
            )
    if facts.expanded_len and find_expansion_id(facts, tokenizer) is None:
        raise ModelLoadError(
            f"{name}: queries are filled up with a token that tokenizer.json lacks "
            f"({facts.expansion_token or 'mask_token or eos_token'})"
        )


def find_expansion_id(facts: LateInteraction, tokenizer: Tokenizer) -> int | None:
    """Returns the token that fills up queries: the named one, the mask token, or the end token."""
    special = tokenizer.special_tokens
    names = facts.expansion_token, special.get("mask_token"), special.get("eos_token")
    named = next((name for name in names if name), None)
    return None if named is None else tokenizer.token_id(named)


def _find_ids(tokenizer: Tokenizer, tokens: tuple[str, ...]) -> frozenset[int]:
    ids = (tokenizer.token_id(token) for token in tokens)
    return frozenset(token_id for token_id in ids if token_id is not None)


def _shorten(limit: TextLimit, max_tokens: int) -> TextLimit:
    return replace(limit, max_tokens=min(limit.max_tokens, max_tokens))
