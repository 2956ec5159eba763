"""Grammar texts need to know this much of a tokenizer; it is small enough to live where the tokenizer does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # the content of tokenizer.json

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GrammarVocabulary:
    """`special_ids` has the marks by spelling (`special_token_ids`); `vocab_size` counts real ids, without padding."""

    special_ids: Mapping[str, int]
    vocab_size: int
    eos_token_ids: tuple[int, ...] = ()  # kept out of every range of tokens


def special_token_ids(tokenizer_json: JsonObject) -> Mapping[str, int]:
    """Returns the ids of the marks by their spelling. In a grammar no text matches a mark."""
    return {token["content"]: token["id"] for token in marks_of(tokenizer_json)}


def marks_of(tokenizer_json: JsonObject) -> list[JsonObject]:
    """Returns the entries of the added tokens that are special or look like a mark (`<think>`)."""
    added = tokenizer_json["added_tokens"]
    return [
        token
        for token in added
        if token["special"] or (token["content"][:1], token["content"][-1:]) == ("<", ">")
    ]
