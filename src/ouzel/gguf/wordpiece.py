"""Makes tokenizers that GGUF calls bert: words, and pieces that continue a word (WordPiece).

llama.cpp's converter writes `▁` before pieces that begin a word, and drops the `##` before others.
"""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.metadata import Metadata
from ouzel.gguf.vocabulary import CONTROL, KEY, UNKNOWN, Vocabulary, token_id

_BEGINNING = "\u2581"
_CONTINUING = "##"
_LONGEST_WORD = 100  # characters; a longer word is unknown


def make_wordpiece_tokenizer(metadata: Metadata, vocabulary: Vocabulary) -> JsonObject:
    """Makes tokenizer.json without its post-processor. Raises ModelLoadError."""
    lowers_case = metadata.flag(KEY + "normalizer.lowercase", True)
    unknown_id = token_id(metadata, vocabulary, "unknown")
    unknown = vocabulary.tokens[unknown_id] if unknown_id is not None else "[UNK]"
    if unknown not in vocabulary.tokens:
        raise ModelLoadError(f"{metadata.source}: tokenizer.ggml.unknown_token_id is missing")
    return {
        "added_tokens": vocabulary.added(),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": metadata.flag(KEY + "normalizer.strip_accents", lowers_case),
            "lowercase": lowers_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": _CONTINUING, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": unknown,
            "continuing_subword_prefix": _CONTINUING,
            "max_input_chars_per_word": _LONGEST_WORD,
            "vocab": name_pieces(vocabulary),
        },
    }


def name_pieces(vocabulary: Vocabulary) -> dict[str, int]:
    """Returns the ids by the names that pieces have in tokenizer.json."""
    ids: dict[str, int] = {}
    for id_, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)):
        if kind in (CONTROL, UNKNOWN):
            name = token
        elif token.startswith(_BEGINNING):
            name = token.removeprefix(_BEGINNING)
        else:
            name = _CONTINUING + token
        ids.setdefault(name, id_)
    return ids
