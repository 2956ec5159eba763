"""Defines the protocols by which the rest of Ouzel uses a tokenizer.

A detokenizer's text does not depend on the places where the token ids were cut: the joined text of
all `feed` calls and `finish()` equals `Tokenizer.decode` of all ids together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FramedText:
    """The tokens of a text, or of the second text of a pair, apart from all tokens before and
    after it.
    """

    before: list[int]  # special tokens, and the first text of a pair
    token_ids: list[int]
    behind: list[int]
    # tokens before the second text; None if the tokenizer does not mark the texts of a pair
    second_begin: int | None = None


class Detokenizer(Protocol):
    """Turns the token ids of one choice into text while they arrive. It never returns half a
    character.
    """

    def feed(self, token_ids: Sequence[int]) -> str:
        """Returns the final text so far. Bytes that may be part of a character are held back."""
        ...

    def finish(self) -> str:
        """Returns the text that was held back, with U+FFFD for invalid bytes."""
        ...


class Tokenizer(Protocol):
    """Converts between text and a model's tokens. It is thread-safe: one instance serves all
    requests.
    """

    def __hash__(self) -> int: ...

    @property
    def vocab_size(self) -> int:
        """Returns the largest token id plus one; larger ids (padded embeddings) have no text."""
        ...

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Returns the ids that end an answer."""
        ...

    @property
    def special_tokens(self) -> Mapping[str, str]:
        """Returns the texts of the special tokens by the roles in chat templates (`bos_token`,
        `eos_token`, …).
        """
        ...

    @property
    def special_token_ids(self) -> frozenset[int]:
        """Returns the ids whose text is left out of an answer unless a request asks for it."""
        ...

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Returns the ids of the tokens that control a prompt, such as turn marks, by their
        spellings.
        """
        ...

    @property
    def spaces_special_tokens(self) -> bool:
        """Tells whether adjacent special tokens are shown with a space between them, which is in no
        token.
        """
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...

    def encode_guarded(
        self, text: str, spans: Sequence[tuple[int, int]], *, add_special_tokens: bool
    ) -> list[int]:
        """Encodes a text with control tokens at the spans only; their spellings elsewhere are text.

        Each span is the begin and end of one control token's spelling; the spans are ascending.
        """
        ...

    def encode_pair(
        self,
        first: str,
        second: str | None,
        *,
        max_tokens: int | None,
        keeps_end: bool = False,
        max_second_tokens: int | None = None,
    ) -> tuple[list[int], int]:
        """Encodes one text, or a pair, with the special tokens around them.

        Returns the token ids and the number of tokens before the second text. If the tokenizer does
        not mark the texts of a pair, the number is the number of all tokens.

        With `max_tokens`, the longer text loses tokens at its end (with `keeps_end`, at its start),
        then both texts do, until at most `max_tokens` are left. With `max_second_tokens`, only the
        second text loses tokens: it keeps at most this number, and at least one. If the first text
        leaves no room for this one, the result is longer than `max_tokens`.
        """
        ...

    def encode_framed(
        self, first: str, second: str | None, *, max_first_tokens: int | None = None
    ) -> FramedText:
        """Encodes like `encode_pair`, but returns the tokens of the last text apart from all
        others.

        Tokens at the end of a pair's first text beyond `max_first_tokens` are left out.
        """
        ...

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool) -> str: ...

    def token_id(self, token: str) -> int | None:
        """Returns the id of a token by its spelling in the vocabulary; None if there is none."""
        ...

    def token_text(self, token_id: int) -> str:
        """Returns the text of any token, special ones too, with U+FFFD for incomplete
        characters.
        """
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """Returns the exact bytes of one token."""
        ...

    def detokenizer(
        self,
        *,
        skip_special_tokens: bool = True,
        shown_special_tokens: frozenset[str] = frozenset(),
        prompt_token_ids: Sequence[int] = (),
    ) -> Detokenizer:
        """Makes the detokenizer of one choice.

        Its text continues the prompt: a leading space stays, and half a character at the prompt's
        end is completed. Special tokens in `shown_special_tokens` are never skipped.
        """
        ...
