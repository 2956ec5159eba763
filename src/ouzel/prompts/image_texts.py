"""Where the template has written its placeholder for a picture, the prompt gets that picture's own text.

Only what the template writes counts: a client's text that spells a placeholder, or a token that stands for features, is
a text like any other.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ouzel.errors import InvalidRequest
from ouzel.prompts.marked_text import MarkedText
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.media_readers.prepared_images import PreparedImage
from ouzel.prompts.spellings import Spellings
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_request import ImageInput


def marks_of(images: ImageReader | None) -> tuple[str, ...]:
    """Returns the texts that are the template's alone."""
    return () if images is None else (*images.placeholders, *images.feature_tokens)


def with_images(
    marked: MarkedText,
    images: Sequence[PreparedImage],
    placeholders: Collection[str],
    marks: Spellings,
) -> MarkedText:
    """Raises InvalidRequest where the template shows more or fewer pictures than the chat has, or others."""
    text, spans = (
        marked.text,
        [span for span in marked.spans if marked.text[slice(*span)] in placeholders],
    )
    if [text[slice(*span)] for span in spans] != [image.placeholder for image in images]:
        raise InvalidRequest(
            f"must have its pictures where this model's chat template shows them: it shows {len(spans)} of "
            f"{len(images)}",
            field="messages",
        )
    pieces, own, position, length = list[str](), list[tuple[int, int]](), 0, 0
    replaced = dict(zip(spans, images, strict=True))
    for begin, end in marked.spans:
        pieces.append(text[position:begin])
        length += begin - position
        image = replaced.get((begin, end))
        piece = text[begin:end] if image is None else image.text
        own += (
            [(length, length + len(piece))]
            if image is None
            else _shifted(marks.spans(piece), length)
        )
        pieces.append(piece)
        length += len(piece)
        position = end
    return MarkedText("".join([*pieces, text[position:]]), tuple(own))


def place_images(
    images: Sequence[PreparedImage],
    token_ids: Sequence[int],
    reader: ImageReader,
    tokenizer: Tokenizer,
) -> tuple[ImageInput, ...]:
    feature_ids = [
        tokenizer.control_tokens[token] for token in reader.feature_tokens
    ]  # checked at the start
    return reader.placed(images, np.flatnonzero(np.isin(token_ids, feature_ids)))


def _shifted(spans: Iterable[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(begin + by, end + by) for begin, end in spans]
