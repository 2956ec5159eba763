"""What grammar texts need to know of a tokenizer; small enough to live where the tokenizer does not."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GrammarVocabulary:
    """`special_ids`: marks by spelling (`special_token_ids`); `vocab_size`: real ids, without padding."""

    special_ids: Mapping[str, int]
    vocab_size: int
    eos_token_ids: tuple[int, ...] = ()  # kept out of every range of tokens
