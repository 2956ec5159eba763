"""These protocols are all that the rest of Ouzel knows of a tokenizer.

A detokenizer's text does not depend on how the token ids were cut into pieces: everything it gave, with `finish()`,
is `Tokenizer.decode` of all ids together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FramedText:
    """Holds the tokens of a text, or of the second text of a pair, and all tokens before and behind them."""

    before: list[int]  # special tokens, and the first text of a pair
    token_ids: list[int]
    behind: list[int]
    # tokens before the second text; None where the tokenizer does not tell texts apart
    second_begin: int | None = None


class Detokenizer(Protocol):
    """Turns one choice's token ids into text as they come; never gives half a character."""

    def feed(self, token_ids: Sequence[int]) -> str:
        """Returns text that is final; what may still be part of a character is held back."""
        ...

    def finish(self) -> str:
        """Returns what was held back, U+FFFD where it is not valid."""
        ...


class Tokenizer(Protocol):
    """Is thread-safe: one instance serves all requests."""

    def __hash__(self) -> int: ...

    @property
    def vocab_size(self) -> int:
        """Is one more than the largest token id; larger ids (padded embeddings) have no text."""
        ...

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """These ids end an answer."""
        ...

    @property
    def special_tokens(self) -> Mapping[str, str]:
        """Maps roles (`bos_token`, `eos_token`, `pad_token`, …), as chat templates name them, to texts."""
        ...

    @property
    def special_token_ids(self) -> frozenset[int]:
        """The text of these ids is left out of an answer unless a request asks for it."""
        ...

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Maps the spellings of the tokens by which a prompt says more than its text to their ids."""
        ...

    @property
    def spaces_special_tokens(self) -> bool:
        """Says whether special tokens that are shown together have spaces between them, which no token stands for."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...

    def encode_guarded(
        self, text: str, spans: Sequence[tuple[int, int]], *, add_special_tokens: bool
    ) -> list[int]:
        """Encodes a text in which control tokens are at the spans alone: their spellings elsewhere are ordinary text.

        The spans are ascending, each the begin and the end of the spelling of one.
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

        Returns the token ids, and how many of them come before the second text. Where the tokenizer does not tell the
        texts of a pair apart this number is the number of all tokens.

        With `max_tokens` the longer text loses tokens at its end (`keeps_end`: at its start), then both texts do,
        until no more than `max_tokens` are left. With `max_second_tokens` only the second text loses tokens: it keeps
        at most so many, and at least one, and the result is longer than `max_tokens` where the first text leaves no
        room for that one.
        """
        ...

    def encode_framed(
        self, first: str, second: str | None, *, max_first_tokens: int | None = None
    ) -> FramedText:
        """Encodes as `encode_pair` does, and keeps the tokens of the last text apart from all others.

        The first text of a pair loses the tokens at its end that exceed `max_first_tokens`.
        """
        ...

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool) -> str: ...

    def token_id(self, token: str) -> int | None:
        """Returns the id of a token as the vocabulary writes it; None where there is none."""
        ...

    def token_text(self, token_id: int) -> str:
        """Returns the text of any token, special ones too, with U+FFFD where its bytes are no whole character."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """Returns the exact bytes that one token stands for."""
        ...

    def detokenizer(
        self,
        *,
        skip_special_tokens: bool = True,
        shown_special_tokens: frozenset[str] = frozenset(),
        prompt_token_ids: Sequence[int] = (),
    ) -> Detokenizer:
        """Makes one for a choice. Its text continues a prompt: a first space stays, half a character is completed.

        `shown_special_tokens` are not skipped.
        """
        ...
