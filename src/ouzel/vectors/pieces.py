"""Divides a text that is longer than the model takes into pieces, each of which the model reads
separately.

All pieces of a document have the same tokens around them: the query, special tokens, a prompt. A
piece has as many tokens of the document as fit beside these; the last piece has the rest. Pieces do
not overlap.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile

from ouzel.prompts.prompt_too_long import PromptTooLong
from ouzel.tokenizer.base import FramedText
from ouzel.vectors.encoded_text import EncodedText

# A piece has at least this share of the model's tokens for the document; smaller pieces are
# meaningless.
_LEAST_SHARE = 4


@dataclass(frozen=True, slots=True)
class PieceLimit:
    """Limits the pieces of one document."""

    max_pieces: int | None = None  # further tokens are cut off
    # further tokens are cut off before the document is divided
    max_document_tokens: int | None = None
    cuts_query: bool = False  # cuts a query to half of the model's tokens instead of refusing it
    max_tokens: int | None = None  # tokens of a piece; None: as many as the model takes


def divide(
    framed: FramedText, limit: PieceLimit, *, max_tokens: int, query_field: str
) -> list[EncodedText]:
    """Returns the pieces of a text; a single one if the whole text fits.

    Raises PromptTooLong for `query_field` if the tokens around the text leave too little room.
    """
    token_ids = framed.token_ids[: limit.max_document_tokens]
    num_around = len(framed.before) + len(framed.behind)
    room = max_tokens - num_around
    if len(token_ids) > room and room < max(max_tokens // _LEAST_SHARE, 1):
        excess = "leaves less than a quarter of them to the document"
        num_tokens = num_around + len(token_ids)
        raise PromptTooLong(
            excess, num_tokens=num_tokens, max_model_len=max_tokens, field=query_field
        )
    begins = range(0, max(len(token_ids), 1), max(room, 1))[: limit.max_pieces]
    texts = [[*framed.before, *token_ids[begin : begin + room], *framed.behind] for begin in begins]
    return [
        EncodedText(each, len(each) if framed.second_begin is None else framed.second_begin)
        for each in texts
    ]


def move_prompt(framed: FramedText, prompt_token_ids: list[int]) -> FramedText:
    """Moves the prompt's tokens from the beginning of the text to the tokens before every piece.

    The last tokens of a prompt may be encoded differently before a text; these stay in the first
    piece.
    """
    num_equal = count_equal(framed.token_ids, prompt_token_ids)
    before = [*framed.before, *framed.token_ids[:num_equal]]
    return replace(framed, before=before, token_ids=framed.token_ids[num_equal:])


def count_equal(token_ids: Iterable[int], others: Iterable[int]) -> int:
    """Returns the number of equal tokens at the beginning of both."""
    pairs = zip(token_ids, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
