"""Tokenizers over characters: SentencePiece's pieces with scores (llama in GGUF), and pieces with
merges (gemma4).

The merges are computed as in transformers (convert_slow_tokenizer.py): each pair of pieces that
makes a piece is a merge, and the piece with the highest score is made first.
"""

from ouzel.checkpoint.model_files import JsonObject, brief
from ouzel.errors import ModelLoadError
from ouzel.gguf.metadata import Metadata
from ouzel.gguf.vocabulary import (
    BYTE,
    KEY,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
    make_bpe_model,
    read_merges,
    token_id,
)

_SPACE = "\u2581"
# Several times as many as in any published model.
MAX_PIECE_CHARS = 2**10
MAX_MERGES = 2**22


def make_sentencepiece_tokenizer(
    metadata: Metadata, vocabulary: Vocabulary, *, has_merges: bool = False
) -> JsonObject:
    """Makes tokenizer.json without its post-processor. Raises ModelLoadError.

    The merges are read from the file with `has_merges`, else they are computed from the scores.
    """
    too_long = (token for token in vocabulary.tokens if len(token) > MAX_PIECE_CHARS)
    if longest := next(too_long, None):
        raise ModelLoadError(
            f"{metadata.source}: tokenizer.ggml.tokens must have <= {MAX_PIECE_CHARS} characters, "
            f"found {brief(longest)} of {len(longest)}"
        )
    ids = {token: token_id for token_id, token in enumerate(vocabulary.tokens)}
    if has_merges:
        merges = read_merges(metadata, ids)
    else:
        scores = metadata.numbers(KEY + "scores", len(metadata.texts(KEY + "tokens")))
        merges = compute_merges(vocabulary, scores, metadata.source)
    kinds = zip(vocabulary.tokens, vocabulary.types, strict=True)
    unknown = next((token for token, kind in kinds if kind == UNKNOWN), None)
    if unknown is None and (unknown_id := token_id(metadata, vocabulary, "unknown")) is not None:
        unknown = vocabulary.tokens[unknown_id]
    has_bytes = BYTE in vocabulary.types
    model = make_bpe_model(ids, merges) | {
        "unk_token": unknown,
        "fuse_unk": True,
        "byte_fallback": has_bytes,
    }
    adds_space = metadata.flag(KEY + "add_space_prefix", True)
    prepend = [{"type": "Prepend", "prepend": _SPACE}] if adds_space else []
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if adds_space else []
    return {
        "added_tokens": vocabulary.added(),
        "normalizer": {"type": "Sequence", "normalizers": [*prepend, spaces]},
        "pre_tokenizer": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                *strip,
            ],
        },
        "model": model,
    }


def compute_merges(vocabulary: Vocabulary, scores: list[float], source: str) -> list[list[str]]:
    kinds = zip(vocabulary.tokens, vocabulary.types, strict=True)
    pieces = {
        token: id_ for id_, (token, kind) in enumerate(kinds) if kind in (NORMAL, USER_DEFINED)
    }
    merges: list[tuple[float, int, int, str, str]] = []
    for token, id_ in pieces.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in pieces and right in pieces:
                merges.append((-scores[id_], -len(left), -len(right), left, right))
        if len(merges) > MAX_MERGES:
            raise ModelLoadError(
                f"{source}: tokenizer.ggml.tokens can be merged in more than {MAX_MERGES} ways"
            )
    merges.sort(key=lambda merge: merge[:3])
    return [[left, right] for *_, left, right in merges]
