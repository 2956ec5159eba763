"""Replaces the template's placeholder for each picture or sound by its own text.

Only placeholders written by the template count. A placeholder or feature token that a client spells
is text.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ouzel.errors import InvalidRequest
from ouzel.prompts.marked_text import MarkedText
from ouzel.prompts.media_readers.document_texts import DocumentTextReader
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.media_readers.prepared_images import PreparedImage
from ouzel.prompts.messages import ReadableMedia
from ouzel.prompts.spellings import Spellings
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_request import MediaInput


def list_image_marks(images: ImageReader | None) -> tuple[str, ...]:
    """Returns the placeholders and feature tokens, which only the template may write."""
    return () if images is None else (*images.placeholders, *images.feature_tokens)


def list_readable_media(
    images: ImageReader | None, document_texts: DocumentTextReader | None
) -> ReadableMedia:
    """Tells which kinds of media the readers prepare."""
    if images is None:
        return ReadableMedia(documents=document_texts is not None)
    return ReadableMedia(
        pictures=images.has_pictures,
        videos=images.has_videos,
        documents=images.has_pictures or document_texts is not None,
        sounds=images.has_sounds,
    )


def insert_image_texts(
    marked: MarkedText,
    images: Sequence[PreparedImage],
    placeholders: Collection[str],
    marks: Spellings,
) -> MarkedText:
    """Returns the rendered chat with the images' texts in the place of their placeholders.

    Raises InvalidRequest if the template shows other pictures than the chat has, or another number.
    """
    text = marked.text
    spans = [span for span in marked.spans if text[slice(*span)] in placeholders]
    if [text[slice(*span)] for span in spans] != [image.placeholder for image in images]:
        raise InvalidRequest(
            "must have its pictures and sounds where this model's chat template shows them: "
            f"it shows {len(spans)} of {len(images)}",
            field="messages",
        )
    pieces, own, position, length = list[str](), list[tuple[int, int]](), 0, 0
    replaced = dict(zip(spans, images, strict=True))
    for begin, end in marked.spans:
        pieces.append(text[position:begin])
        length += begin - position
        image = replaced.get((begin, end))
        piece = text[begin:end] if image is None else image.text
        if image is None:
            own.append((length, length + len(piece)))
        else:
            own += _shifted(marks.spans(piece), length)
        pieces.append(piece)
        length += len(piece)
        position = end
    return MarkedText("".join([*pieces, text[position:]]), tuple(own))


def place_images(
    images: Sequence[PreparedImage],
    token_ids: Sequence[int],
    reader: ImageReader,
    tokenizer: Tokenizer,
) -> tuple[MediaInput, ...]:
    # The start of the server has checked that the feature tokens exist.
    feature_ids = [tokenizer.control_tokens[token] for token in reader.feature_tokens]
    return reader.make_inputs(images, np.flatnonzero(np.isin(token_ids, feature_ids)))


def _shifted(spans: Iterable[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(begin + by, end + by) for begin, end in spans]
