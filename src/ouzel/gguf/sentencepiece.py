"""The tokenizers that GGUF calls llama, SentencePiece's pieces with scores, over characters, and gemma4, the same with
merges.

Written as transformers does (convert_slow_tokenizer.py): merges are the pairs of pieces that make a piece, and the
piece with the highest score is made first.
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
    bpe_model,
    read_merges,
    token_id,
)

_SPACE = "\u2581"
# Several times what any published model has.
MAX_PIECE_CHARS = 2**10
MAX_MERGES = 2**22


def sentencepiece_tokenizer(
    metadata: Metadata, vocabulary: Vocabulary, *, has_merges: bool = False
) -> JsonObject:
    """Returns tokenizer.json without its post-processor. The merges are in the file, or made of the scores.

    Raises ModelLoadError.
    """
    if longest := next(
        (token for token in vocabulary.tokens if len(token) > MAX_PIECE_CHARS), None
    ):
        raise ModelLoadError(
            f"{metadata.source}: tokenizer.ggml.tokens must have <= {MAX_PIECE_CHARS} characters, "
            f"found {brief(longest)} of {len(longest)}"
        )
    ids = {token: token_id for token_id, token in enumerate(vocabulary.tokens)}
    if has_merges:
        merges = read_merges(metadata, ids)
    else:
        scores = metadata.numbers(KEY + "scores", len(metadata.texts(KEY + "tokens")))
        merges = merges_by_score(vocabulary, scores, metadata.source)
    kinds = zip(vocabulary.tokens, vocabulary.types, strict=True)
    unknown = next((token for token, kind in kinds if kind == UNKNOWN), None)
    if unknown is None and (unknown_id := token_id(metadata, vocabulary, "unknown")) is not None:
        unknown = vocabulary.tokens[unknown_id]
    has_bytes = BYTE in vocabulary.types
    model = bpe_model(ids, merges) | {
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


def merges_by_score(vocabulary: Vocabulary, scores: list[float], source: str) -> list[list[str]]:
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
