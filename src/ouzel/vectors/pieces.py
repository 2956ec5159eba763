"""A text that is longer than the model takes is divided into pieces, and each piece is read by itself.

All pieces of a document have the same tokens around them: the query, special tokens, a prompt. A piece has as many
tokens of the document as these leave room for, and the last piece has the rest. Pieces do not overlap.
"""

from dataclasses import dataclass, replace

from ouzel.prompts.prompt_too_long import PromptTooLong
from ouzel.tokenizer.base import FramedText
from ouzel.vectors.encoded_text import EncodedText

_LEAST_SHARE = 4  # a piece has room for one in so many of the model's tokens: smaller pieces tell nothing of a document


@dataclass(frozen=True, slots=True)
class PieceLimit:
    """Limits the pieces of one document."""

    max_pieces: int | None = None  # the tokens behind them are cut off
    # the tokens behind them are cut off, before the document is divided
    max_document_tokens: int | None = None
    cuts_query: bool = False  # to half of the model's tokens; else a longer query may be refused


def divide(
    framed: FramedText, limit: PieceLimit, *, max_tokens: int, query_field: str
) -> list[EncodedText]:
    """Returns one piece where the whole text fits.

    Raises PromptTooLong, which names the `query_field`, where the tokens around the text leave too little room.
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


def with_prompt(framed: FramedText, prompt_token_ids: list[int]) -> FramedText:
    """Moves the tokens of the prompt, with which the text begins, to the tokens that every piece has.

    The last tokens of a prompt may be others before a text; these stay in the first piece.
    """
    pairs = zip(framed.token_ids, prompt_token_ids, strict=False)
    num_equal = next(
        (place for place, (one, other) in enumerate(pairs) if one != other), len(prompt_token_ids)
    )
    before = [*framed.before, *framed.token_ids[:num_equal]]
    return replace(framed, before=before, token_ids=framed.token_ids[num_equal:])
