"""Describes the part of a tokenizer that grammar texts need, small enough to send elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # the content of tokenizer.json

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GrammarVocabulary:
    """The marks (special tokens) and the size of a tokenizer's vocabulary."""

    special_ids: Mapping[str, int]  # ids of the marks by spelling
    vocab_size: int  # number of real token ids, without padding
    eos_token_ids: tuple[int, ...] = ()  # excluded from every range of tokens


def special_token_ids(tokenizer_json: JsonObject) -> Mapping[str, int]:
    """Returns the ids of the marks by their spelling. In a grammar no text matches a mark."""
    return {token["content"]: token["id"] for token in list_marks(tokenizer_json)}


def list_marks(tokenizer_json: JsonObject) -> list[JsonObject]:
    """Returns the added tokens that are special or look like a mark (`<think>`)."""
    added = tokenizer_json["added_tokens"]
    return [
        token
        for token in added
        if token["special"] or (token["content"][:1], token["content"][-1:]) == ("<", ">")
    ]
