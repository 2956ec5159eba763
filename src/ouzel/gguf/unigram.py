"""Makes tokenizers that GGUF calls t5: SentencePiece's pieces with probabilities (XLM-RoBERTa)."""

import base64

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.character_table import is_character_table
from ouzel.gguf.metadata import Metadata
from ouzel.gguf.vocabulary import KEY, UNKNOWN, Vocabulary, token_id

_SPACE = "\u2581"
_CHARACTERS = KEY + "precompiled_charsmap"


def make_unigram_tokenizer(metadata: Metadata, vocabulary: Vocabulary) -> JsonObject:
    """Makes tokenizer.json without its post-processor. Raises ModelLoadError."""
    scores = metadata.numbers(KEY + "scores", len(metadata.texts(KEY + "tokens")))
    adds_space = metadata.flag(KEY + "add_space_prefix", True)
    space: JsonObject = {
        "type": "Metaspace",
        "replacement": _SPACE,
        "prepend_scheme": "always" if adds_space else "never",
        "split": True,
    }
    splits = metadata.flag(KEY + "remove_extra_whitespaces", True)
    words = [{"type": "WhitespaceSplit"}, space]
    return {
        "added_tokens": vocabulary.added(),
        "normalizer": _make_normalizer(metadata),
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": words} if splits else space,
        "decoder": space,
        "model": {
            "type": "Unigram",
            "unk_id": _find_unknown(metadata, vocabulary),
            "vocab": [list(pair) for pair in zip(vocabulary.tokens, scores, strict=False)],
            "byte_fallback": False,
        },
    }


def _make_normalizer(metadata: Metadata) -> JsonObject | None:
    """Returns the normalizer that replaces characters by the file's table, None without a table."""
    if not metadata.has(_CHARACTERS):
        return None
    table = metadata.array(_CHARACTERS)
    content = table.tobytes()
    if table.dtype.itemsize != 1 or not is_character_table(content):
        raise metadata.wrong(_CHARACTERS, "SentencePiece's table of characters, as bytes", table)
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(content).decode()}


def _find_unknown(metadata: Metadata, vocabulary: Vocabulary) -> int:
    if UNKNOWN in vocabulary.types:
        return vocabulary.types.index(UNKNOWN)
    unknown = token_id(metadata, vocabulary, "unknown")
    if unknown is None:
        raise ModelLoadError(f"{metadata.source}: tokenizer.ggml.unknown_token_id is missing")
    return unknown
