"""What an engine makes of a prompt instead of tokens."""

from typing import Literal

import msgspec

Task = Literal[
    "generate", "embed", "score"
]  # what an engine makes of a prompt: tokens, a vector, scores


class Pooling(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A vector is made of each of a request's texts, instead of tokens; the choice of that index ends with it.

    `prompt_token_ids` are the texts one after the other, n of them; more than one where the engine says that it may be.
    """

    text_lens: tuple[int, ...] = ()  # tokens of each; empty: there is one
    second_begins: tuple[
        int, ...
    ] = ()  # where the second text of a pair begins in each; empty: there are no pairs
    token_ids: tuple[
        int, ...
    ] = ()  # the vector is their logits behind the last token; empty: what the model makes
