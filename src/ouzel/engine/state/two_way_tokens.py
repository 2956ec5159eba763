"""Finds the two-way tokens of a prompt, which attend to each other, also to later ones.

Rules
1. Two-way tokens follow each other in a prompt, and form a span. In some models the tokens of an
   image are two-way, in others all tokens of the prompt; output tokens are never two-way, and
   neither are the tokens of a sound in a prompt that has other tokens.
2. All tokens of a span are computed in one step, unless the prefix cache has the first ones.
3. The prefix cache provides tokens of a two-way prompt only to an equal prompt, and tokens of a
   span of images only to a prompt with an equal span.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import ImageInput, MediaInput

Span = tuple[int, int]
"""The begin and the end of successive tokens of a prompt."""

CAUSAL = -1


def find_two_way_spans(
    info: EngineInfo, num_prompt_tokens: int, images: Iterable[MediaInput]
) -> tuple[Span, ...]:
    if info.attends_to_whole_prompts:
        return ((0, num_prompt_tokens),)
    if not info.attends_to_whole_images:
        return ()
    spans: list[Span] = []
    seen = (image for image in images if isinstance(image, ImageInput))
    for begin, num_tokens in (run for image in seen for run in image.runs):
        if spans and spans[-1][1] == begin:
            spans[-1] = (spans[-1][0], begin + num_tokens)
        else:
            spans.append((begin, begin + num_tokens))
    return tuple(spans)


def span_around(spans: Iterable[Span], token: int) -> Span | None:
    """Returns the span that a cut before this token would divide."""
    return next(((begin, end) for begin, end in spans if begin < token < end), None)


def two_way_begins(spans: Iterable[Span], first: int, end: int) -> NDArray[np.int32]:
    """Returns the begin of the span of each token [first, end), CAUSAL for a token without one."""
    begins = np.full(end - first, CAUSAL, np.int32)
    for begin, span_end in spans:
        begins[max(begin - first, 0) : max(span_end - first, 0)] = begin
    return begins
