"""Defines requests for vectors and scores instead of tokens."""

from typing import Literal

import msgspec

# an engine's results: tokens, vectors, scores, transcripts or speech
Task = Literal["generate", "embed", "score", "transcribe", "speak"]
# The result for a text: one vector (or scores), a vector of each token, or a weight of each token.
VectorForm = Literal["text", "tokens", "weights"]


class Pooling(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A request for a vector of each text instead of tokens; each text is a choice of its own.

    `prompt_token_ids` has the n texts one after the other; n > 1 only up to the engine's
    `max_texts`.
    """

    text_lens: tuple[int, ...] = ()  # tokens of each text; empty: one text
    second_begins: tuple[int, ...] = ()  # start of the second text in each pair; empty: no pairs
    # the vector has the logits of these tokens after the last token; empty: the model's own vector
    token_ids: tuple[int, ...] = ()
    # For models with adapters for tasks: the task of each text, counted from 1; 0: none. Empty: no
    # text has one.
    tasks: tuple[int, ...] = ()
    form: VectorForm = "text"
    # Tokens of each text that its tokens attend to: the first ones. Further tokens get vectors, but
    # no other token reads them. Empty: all tokens.
    visible_lens: tuple[int, ...] = ()
