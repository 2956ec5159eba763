"""Spells text in a model's vocabulary: marks are tokens of their own, which no text matches."""

import re
from collections.abc import Iterable
from itertools import pairwise

from ouzel.grammar.caps import MAX_LITERAL_CHARS, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.grammar.write.nodes import Literal, Node, Regular, Sequence, Tokens
from ouzel.grammar.write.regex import ANY_TEXT, escape


class Spelling:
    """Makes grammar nodes for texts, with the marks (special tokens) of a vocabulary as ids."""

    def __init__(self, vocabulary: GrammarVocabulary) -> None:
        self._vocabulary = vocabulary
        longest_first = sorted(filter(None, vocabulary.special_ids), key=len, reverse=True)
        self._marks = re.compile(
            f"({'|'.join(map(re.escape, longest_first))})" if longest_first else r"(?!)"
        )

    def literal(self, text: str) -> Node:
        """Returns a node for a text.

        Its marks are numbers, because the engine's tokenizer has other names for them.
        """
        check_at_most("the number of characters of a literal", len(text), MAX_LITERAL_CHARS)
        special_ids = self._vocabulary.special_ids
        pieces = self._marks.split(text) if self._marks.groups else [text]
        nodes = [
            Tokens(str(special_ids[piece])) if piece in special_ids else Literal(piece)
            for piece in pieces
        ]
        return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))

    def any_text(self, excludes: list[str], max_chars: int | None = None) -> Regular:
        """Returns an expression for any text without marks and excluded strings.

        An excluded string with a mark in it cannot occur anyway.
        """
        spellable = [text for text in excludes if not self._marks.search(text)]
        if "" in spellable:
            raise GrammarError("excludes must not have an empty string")
        expression = f"/{ANY_TEXT}/" if max_chars is None else f"/(?s:.{{0,{max_chars}}})/"
        if spellable:
            found = "|".join(map(escape, spellable))
            expression = f"({expression} & ~/{ANY_TEXT}({found}){ANY_TEXT}/)"
        return Regular(expression, is_open=True, needs_end=True)

    def token_id(self, token: object, path: str) -> int:
        """Returns the id of a token named by its number or a mark's spelling.

        Raises GrammarError.
        """
        token_id = self._vocabulary.special_ids.get(token) if isinstance(token, str) else token
        if not isinstance(token_id, int) or isinstance(token_id, bool):
            raise GrammarError(
                f"{path} must be a token id or the spelling of a special token, given {token!r}"
            )
        if not 0 <= token_id < self._vocabulary.vocab_size:
            raise GrammarError(
                f"{path} must be >= 0 and < {self._vocabulary.vocab_size}, given {token_id}"
            )
        return token_id

    def tokens_but(self, excluded: Iterable[int]) -> Tokens:
        """Returns a node for all real tokens except the excluded and end tokens.

        A range by exclusion would also match padding and end tokens.
        """
        holes = sorted({*excluded, *self._vocabulary.eos_token_ids})
        bounds = [-1, *holes, self._vocabulary.vocab_size]
        ranges = [(low + 1, high - 1) for low, high in pairwise(bounds) if low + 1 < high]
        if not ranges:
            raise GrammarError("no token is left")
        return Tokens(",".join(f"{low}-{high}" if low < high else str(low) for low, high in ranges))
