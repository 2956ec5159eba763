"""Reads the vocabulary of a GGUF file: tokens in the order of their ids, each with a type."""

from dataclasses import dataclass

from ouzel.checkpoint.model_files import JsonObject, brief
from ouzel.errors import ModelLoadError
from ouzel.gguf.metadata import Metadata

KEY = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    tokens: list[str]  # index is the id; unused tokens at the end are left out
    types: list[int]

    def added(self) -> list[JsonObject]:
        """Returns the added tokens, which are found in a text before it is normalised and split."""
        return [
            {
                "id": token_id,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind != USER_DEFINED,
            }
            for token_id, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True))
            if kind in (CONTROL, USER_DEFINED, UNKNOWN)
        ]

    def ids(self) -> dict[str, int]:
        """Returns the ids by token, without added tokens at the end, whose ids continue the
        vocabulary's.
        """
        count = len(self.tokens)
        while count and self.types[count - 1] in (CONTROL, USER_DEFINED):
            count -= 1
        return {token: token_id for token_id, token in enumerate(self.tokens[:count])}


def read_vocabulary(metadata: Metadata) -> Vocabulary:
    tokens = metadata.texts(KEY + "tokens")
    types: list[int] = []
    if metadata.has(KEY + "token_type"):
        types = metadata.integers(KEY + "token_type", len(tokens))
    types = types or [NORMAL] * len(tokens)
    count = len(tokens)
    # Unused tokens fill the vocabulary up to the number of rows of the embedding.
    while count and types[count - 1] == UNUSED:
        count -= 1
    if not count:
        raise ModelLoadError(
            f"{metadata.source}: tokenizer.ggml.tokens must name tokens, but none is in use"
        )
    ids: dict[str, int] = {}
    for token_id, token in enumerate(tokens[:count]):
        if not token or ids.setdefault(token, token_id) != token_id:
            raise ModelLoadError(
                f"{metadata.source}: tokenizer.ggml.tokens must differ and not be empty, "
                f"found {brief(token)} at {token_id}"
            )
    return Vocabulary(tokens[:count], types[:count])


def token_id(metadata: Metadata, vocabulary: Vocabulary, name: str) -> int | None:
    """Returns the id of the file's token `bos`, `eos`, `unknown`, …; None if there is none."""
    key = f"{KEY}{name}_token_id"
    if not metadata.has(key):
        return None
    if not 0 <= (value := metadata.integer(key)) < len(vocabulary.tokens):
        raise metadata.wrong(key, f"< {len(vocabulary.tokens)}, the number of tokens", value)
    return value


def make_bpe_model(ids: dict[str, int], merges: list[list[str]]) -> JsonObject:
    """Returns the entry `model` of tokenizer.json."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": ids,
        "merges": merges,
    }


def read_merges(metadata: Metadata, ids: dict[str, int]) -> list[list[str]]:
    """Reads merges: each is two tokens with a space between. A space inside a token has another
    character.
    """
    merges = []
    for line in metadata.texts(KEY + "merges"):
        cut = line.find(" ", 1)
        left, right = (line[:cut], line[cut + 1 :]) if cut > 0 else (line, "")
        if left not in ids or right not in ids or left + right not in ids:
            raise ModelLoadError(
                f"{metadata.source}: tokenizer.ggml.merges must merge tokens, found {brief(line)}"
            )
        merges.append([left, right])
    return merges
