"""Splits the tokens of a text into words, as openai-whisper's `tokenizer.py` does."""

import codecs
import string
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.tokenizer.base import Tokenizer

# languages written without spaces: each character is a word
_WITHOUT_SPACES = frozenset({"zh", "ja", "th", "lo", "my", "yue"})


@dataclass(frozen=True, slots=True)
class TokenWord:
    text: str
    num_tokens: int


def split_words(token_ids: Sequence[int], tokenizer: Tokenizer, language: str) -> list[TokenWord]:
    """Returns the words of a text; their token counts add up to all of its tokens."""
    pieces = _split_characters(token_ids, tokenizer)
    if language in _WITHOUT_SPACES:
        return pieces
    words: list[TokenWord] = []
    for piece in pieces:
        is_punctuation = piece.text.strip() in string.punctuation
        if piece.text.startswith(" ") or is_punctuation or not words:
            words.append(piece)
        else:
            last = words[-1]
            words[-1] = TokenWord(last.text + piece.text, last.num_tokens + piece.num_tokens)
    return words


def _split_characters(token_ids: Sequence[int], tokenizer: Tokenizer) -> list[TokenWord]:
    """Returns the shortest runs of tokens that end at the end of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces: list[TokenWord] = []
    text, num_tokens = "", 0
    for place, token_id in enumerate(token_ids):
        is_last = place == len(token_ids) - 1
        text += decoder.decode(tokenizer.token_bytes(token_id), is_last)
        num_tokens += 1
        unread, _ = decoder.getstate()
        if not unread or is_last:
            pieces.append(TokenWord(text, num_tokens))
            text, num_tokens = "", 0
    return pieces
